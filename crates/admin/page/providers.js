// The providers: the state of each and why, its account, and what an operator does with one: pause, resume, drain.

import { ask } from './ask.js';
import { providerAction } from './actions.js';
import { unloaded } from './dialog.js';
import { button, el, place, scrolled, table } from './dom.js';
import { ago, count, millis, money, share, span } from './figures.js';
import { ofProvider } from './status.js';

/** How many snapshots pass between two updates, if the state of no provider changes. */
const EVERY = 5;
/** What can be done with a provider in each mode. */
const ACTIONS = { active: ['pause', 'drain'], paused: ['resume', 'drain'], drained: ['resume', 'pause'] };
const NAMES = { pause: 'Pause', resume: 'Resume', drain: 'Drain' };

function why(one) {
  if (one.fault) return el('span', {}, el('code', {}, one.fault.code), ` (${one.fault.class})`, one.since ? [', since ', ago(millis(one.since))] : null);
  if (one.state === 'tripped') return el('span', {}, 'does not answer', one.until_ms ? [', tried again ', ago(one.until_ms)] : null);
  if (one.state === 'throttled') return `busy${one.spacing_ms ? `, one submit each ${span(one.spacing_ms)}` : ''}`;
  if (one.state === 'drained') return 'finishes its tasks, and gets no more';
  return one.state === 'paused' ? 'a person has paused it' : '–';
}

/** When the balance ends at the spending of the last 24 hours. */
function balanceEnds(one) {
  if (one.balance_ends) return ago(millis(one.balance_ends));
  return one.balance_micros !== null && one.spent_last_day_micros === 0 ? 'nothing is spent' : 'not known';
}

/** A provider that is not `ok` can be resumed, too: its account may be fixed. */
const actionsOf = (one) => (one.mode === 'active' && one.state !== 'ok' ? ['resume', ...ACTIONS.active] : ACTIONS[one.mode] ?? []);

function acts(one, act) {
  return el('div', { class: 'acts' }, actionsOf(one).map((action) =>
    button(`${NAMES[action]}…`, () => act(action, one), { 'data-action': `${action} ${one.name}`, 'aria-label': `${NAMES[action]} ${one.name}…` })));
}

function overviewOf(list, act) {
  const heads = [{ name: 'Provider', isRowHead: true }, { name: 'State' }, { name: 'Why' }, { name: 'Balance', number: true }, { name: 'Balance ends' }, { name: 'Threads in use', number: true }, { name: 'Open tasks', number: true }, { name: 'Service' }, { name: 'Actions', isUnseen: true }];
  return scrolled('Providers', table('Providers', heads, list.map((one) => [
    one.name, ofProvider(one), why(one),
    one.balance_micros === null ? 'not known' : money(one.balance_micros, one.currency),
    balanceEnds(one),
    one.threads ? `${count(one.threads.working)} of ${count(one.threads.total)}` : '–',
    count(one.open_tasks), [one.dialect, one.protocol].filter(Boolean).join(', ') || 'not known', acts(one, act),
  ])));
}

function routing({ rule, busy_wait_ms: wait, kinds, tenants }) {
  const others = [...Object.entries(kinds).map(([name, other]) => `kind ${name}: ${other}`), ...Object.entries(tenants).map(([name, other]) => `tenant ${name}: ${other}`)];
  return el('p', { class: 'soft' }, `Routing: ${[rule, ...others].join('; ')}. An order waits ${span(wait)} for a provider that is only busy.`);
}

function measured(list) {
  const rows = list.flatMap((one) => one.measured.map((kind) => [one.name, kind.kind, count(kind.solves), span(kind.p50_ms), span(kind.p95_ms), span(kind.p99_ms), kind.success_permille === null ? '–' : share(kind.success_permille / 1000)]));
  if (!rows.length) return null;
  const heads = [{ name: 'Provider', isRowHead: true }, { name: 'Kind' }, { name: 'Solves', number: true }, { name: 'Half within', number: true }, { name: '95 % within', number: true }, { name: '99 % within', number: true }, { name: 'Success', number: true }];
  return [el('h2', {}, 'Measured by this node since its start'), scrolled('Measured', table('Measured', heads, rows))];
}

export function providers() {
  const leaving = new AbortController();
  const list = el('div', {}, el('p', { class: 'soft' }, 'Looking…'));
  const shown = place(list);
  let seen = 0;
  let before = null;

  async function act(action, one) {
    if (await providerAction(action, one)) await load();
  }

  async function load() {
    try {
      const response = await ask('/v1/admin/providers', { signal: leaving.signal });
      shown(response, (all) => [overviewOf(all.providers, act), all.providers.length > 1 ? routing(all.routing) : null, measured(all.providers)]);
    } catch (error) {
      if (!leaving.signal.aborted) shown(error.message, () => unloaded(error));
    }
  }

  const node = el('div', {}, el('div', { class: 'head' }, el('h1', {}, 'Providers')), list);
  load();
  const update = (snapshot) => {
    seen += 1;
    const now = JSON.stringify(snapshot.providers.map((one) => [one.name, one.mode, one.state, one.balance_micros]));
    if (seen % EVERY === 0 || (before !== null && before !== now)) load();
    before = now;
  };
  return { title: 'Providers', node, update, load, close: () => leaving.abort() };
}
