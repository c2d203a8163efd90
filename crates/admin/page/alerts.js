// The alerts: what is wrong now and since when, which alerts were acknowledged, and which have cleared.

import { ask } from './ask.js';
import { resumeAll } from './actions.js';
import { errorBox, unloaded } from './dialog.js';
import { button, el, fill, place, speak } from './dom.js';
import { ago, millis, words } from './figures.js';
import * as live from './live.js';
import { ofAlert } from './status.js';

const named = (alert) => JSON.stringify([alert.rule, alert.subject]);

export function alerts() {
  const leaving = new AbortController();
  const node = el('div', {}, el('div', { class: 'head' }, el('h1', {}, 'Alerts')));
  const list = el('div', {}, el('p', { class: 'soft' }, 'Looking…'));
  const wrong = el('div', {});
  const shown = place(list);
  node.append(wrong, list);
  let known = [];
  let isLoaded = false;

  async function see(alert) {
    fill(wrong);
    try {
      await ask('/v1/admin/alerts/seen', { method: 'POST', body: { rule: alert.rule, subject: alert.subject } });
      speak('Marked as seen.');
      await load();
    } catch (error) {
      fill(wrong, errorBox(error));
    }
  }

  const item = (alert) => el('li', { class: alert.cleared_at ? 'cleared' : alert.is_grave ? 'grave' : 'slow' },
    el('div', { class: 'row' }, ofAlert(alert), el('strong', {}, words(alert.rule)), alert.subject ? el('span', { class: 'soft' }, alert.subject) : null),
    el('p', {}, alert.words),
    el('p', { class: 'soft' }, 'Raised ', ago(alert.raised_ms ?? millis(alert.raised_at)), alert.cleared_at ? [', cleared ', ago(millis(alert.cleared_at))] : null, alert.seen_at ? [', seen ', ago(millis(alert.seen_at))] : null, '.'),
    el('div', { class: 'acts' },
      alert.rule === 'provider_paused' && !alert.cleared_at ? button('Resume held orders…', resumeAll, { 'data-action': 'resume' }) : null,
      alert.seen_at || alert.cleared_at ? null : button('I have seen it', () => see(alert), { 'data-action': 'see', 'aria-label': `I have seen it: ${alert.words}` })));

  function show() {
    shown(known, (all) => {
      const raised = all.filter((alert) => !alert.cleared_at);
      const cleared = all.filter((alert) => alert.cleared_at);
      return [
        raised.length ? el('ul', { class: 'alerts' }, raised.map(item)) : el('p', { class: 'empty' }, 'Nothing is wrong.'),
        cleared.length ? [el('h2', {}, 'Cleared lately'), el('ul', { class: 'alerts' }, cleared.map(item))] : null,
      ];
    });
  }

  async function load() {
    try {
      const response = await ask('/v1/admin/alerts', { signal: leaving.signal });
      known = response.alerts;
      fill(wrong);
      isLoaded = true;
      show();
    } catch (error) {
      if (leaving.signal.aborted) return;
      isLoaded = false;
      // The last snapshot is better than nothing: while the store is away, there is nothing else.
      const latest = live.now()?.alerts;
      if (latest) fill(wrong, unloaded(error));
      else shown(error.message, () => unloaded(error));
    }
  }

  load();
  // The snapshot shows that something changed; the list also has cleared alerts.
  let then = null;
  const update = (snapshot) => {
    const now = JSON.stringify(snapshot.alerts.map((alert) => [named(alert), alert.cleared_at, alert.seen_at, alert.words]));
    if (!isLoaded) {
      known = snapshot.alerts;
      show();
    }
    if (then !== null && then !== now && live.lineState() === 'live') load();
    then = now;
  };
  return { title: 'Alerts', node, update, load, close: () => leaving.abort() };
}
