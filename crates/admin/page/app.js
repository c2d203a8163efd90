// The frame around the views: the login, the view of the address, the state of the connection, and the theme. A view is built
// when its address is opened, gets each snapshot, and is closed when the user leaves it.

import { alerts } from './alerts.js';
import { ask, key, onRefused } from './ask.js';
import { budgets } from './budgets.js';
import { usage } from './usage.js';
import * as bulks from './bulks.js';
import { el, fill, say, speak } from './dom.js';
import { ago, count } from './figures.js';
import { letters } from './dead_letters.js';
import * as live from './live.js';
import { login } from './login.js';
import { order } from './order.js';
import { overview } from './overview.js';
import { pools } from './pools.js';
import { providers } from './providers.js';
import { search } from './search.js';
import { settings } from './settings.js';

const VIEWS = { '': overview, dead: letters, order, search, usage, providers, budgets, pools, alerts, settings };
/** The entry of the navigation for a view without an entry of its own. */
const BELONGS_TO = { order: 'search' };

const main = document.getElementById('main');
const linkState = document.getElementById('link-state');
const navigation = document.querySelector('nav.views');
const quick = document.querySelector('form.quick');
const leave = document.getElementById('leave');

let shown = null;
let isIn = false;
let isFirst = true;

function address() {
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const decoded = path.split('/').map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { name: decoded[0], rest: decoded.slice(1), query: new URLSearchParams(query) };
}

function enter(view) {
  shown?.close?.();
  shown = view;
  fill(main, bulks.node, view.node);
  document.title = `${view.title} · Quittance`;
  if (!isFirst) {
    window.scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
  isFirst = false;
  if (live.now()) view.update?.(live.now());
}

/** How often a failed view is loaded again while the connection is up. */
const AGAIN_MS = 3000;
let triedAt = 0;
/** Loads failed views again: the connection is up, so the message that the daemon cannot be reached must go. */
function loadAgain() {
  if (!shown?.load || !main.querySelector('[data-unloaded]') || Date.now() - triedAt < AGAIN_MS) return;
  triedAt = Date.now();
  shown.load();
}

// A hidden tab has received nothing in the meantime.
document.addEventListener('visibilitychange', () => {
  if (!document.hidden && isIn) shown?.load?.();
});

function nowhere() {
  return { title: 'Not found', node: el('section', {}, el('h1', {}, 'There is no such view'), el('p', {}, el('a', { href: '#/' }, 'To the overview'))) };
}

function route() {
  if (!isIn || (location.hash && !location.hash.startsWith('#/'))) return;
  const { name, rest, query } = address();
  for (const link of navigation.querySelectorAll('a')) {
    const isHere = link.getAttribute('href') === `#/${BELONGS_TO[name] ?? name}`;
    if (isHere) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  const make = Object.hasOwn(VIEWS, name) ? VIEWS[name] : nowhere;
  enter(make({ rest, query }));
}

function admit() {
  isIn = true;
  navigation.hidden = false;
  quick.hidden = false;
  leave.hidden = !key.read();
  live.open();
  route();
}

/** Shows the login. `why` is for a user whose key is not accepted any more. */
function turnAway(why) {
  isIn = false;
  key.forget();
  live.close();
  bulks.forget();
  navigation.hidden = true;
  quick.hidden = true;
  leave.hidden = true;
  for (const dialog of document.querySelectorAll('dialog[open]')) dialog.close();
  enter(login({ admit, why }));
}

function badge(node, number, words) {
  node.hidden = !number;
  if (number) fill(node, count(number), el('span', { class: 'unseen' }, ` ${words}`));
}

/** Shows whether the connection is up, and otherwise the age of the figures. */
function showLine(snapshot, state) {
  document.body.classList.toggle('stale', state === 'lost');
  if (linkState.dataset.state === state) return;
  // This is announced once. The age of the figures continues to change, but only visibly.
  if (state === 'lost') speak('Not connected. The figures are old.');
  else if (linkState.dataset.state === 'lost') speak(state === 'live' ? 'Connected again.' : '');
  linkState.dataset.state = state;
  if (state === 'closed') fill(linkState);
  else if (state === 'live') fill(linkState, 'Live');
  else if (state === 'connecting') fill(linkState, 'Connecting…');
  else if (snapshot) fill(linkState, el('strong', {}, 'Not connected'), el('span', {}, 'What you see is from ', ago(snapshot.at_ms), '.'));
  else fill(linkState, el('strong', {}, 'Not connected'), 'Trying again…');
}

const named = (alert) => JSON.stringify([alert.rule, alert.subject]);
let standing = null;
/** Lets a screen reader announce new alerts. */
function announce(alerts) {
  const raised = alerts.filter((alert) => !alert.cleared_at);
  const fresh = raised.filter((alert) => standing && !standing.has(named(alert)));
  if (fresh.length) speak(`Alert: ${fresh.map((alert) => alert.words).join(' ')}`);
  standing = new Set(raised.map(named));
}

live.watch((snapshot, state) => {
  showLine(snapshot, state);
  if (!snapshot || state !== 'live') return;
  badge(document.getElementById('count-dead'), snapshot.orders.dead, 'wait for a person');
  badge(document.getElementById('count-alerts'), snapshot.alerts.filter((alert) => !alert.cleared_at && !alert.seen_at).length, 'not seen yet');
  announce(snapshot.alerts);
  bulks.update(snapshot);
  shown?.update?.(snapshot);
  loadAgain();
});

const themes = { system: 'Theme: system', light: 'Theme: light', dark: 'Theme: dark' };
const themeButton = document.getElementById('theme');
function showTheme() {
  say(themeButton, themes[document.documentElement.dataset.theme ?? 'system']);
}
themeButton.addEventListener('click', () => {
  const order = ['system', 'light', 'dark'];
  const next = order[(order.indexOf(document.documentElement.dataset.theme ?? 'system') + 1) % order.length];
  if (next === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem('quittance.theme', next);
  } catch {
    // Without storage, the theme lasts until the page is closed.
  }
  showTheme();
});
showTheme();

quick.addEventListener('submit', (event) => {
  event.preventDefault();
  const text = new FormData(quick).get('q').trim();
  if (text) location.hash = `#/search?q=${encodeURIComponent(text)}`;
});
leave.addEventListener('click', () => turnAway(null));
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});
window.addEventListener('hashchange', route);
onRefused((why) => isIn && turnAway(why));

// If no key is configured, every user of this machine is the operator: then the page asks for none.
try {
  await ask('/v1/admin/state');
  admit();
} catch (error) {
  // If the daemon did not answer, the views show this and try again.
  if (error.status === 401 || error.status === 403) turnAway(key.read() ? error : null);
  else admit();
}
