// The state of an order, a provider or an alert, as a sign and a word. Colour is only an addition.

import { el } from './dom.js';
import { words } from './figures.js';

const SIGNS = {
  good: '✓', going: '●', slow: '◐', bad: '✕', off: '○', grave: '▲',
};
const ORDERS = {
  queued: 'going', held: 'slow', submitting: 'going', solving: 'going', in_doubt: 'slow', pending: 'going',
  solved: 'good', claimed: 'good', expired: 'off', cancelled: 'off', failed: 'bad', dead: 'grave',
};
const PROVIDERS = { ok: 'good', throttled: 'slow', tripped: 'bad', paused: 'grave', drained: 'off' };

export function sign(style, text) {
  return el('span', { class: `sign ${style}` }, el('span', { class: 'mark', 'aria-hidden': 'true' }, SIGNS[style]), words(text).replace(/^./u, (c) => c.toUpperCase()));
}

export const ofOrder = (order) => sign(ORDERS[order.status] ?? 'off', order.status === 'pending' ? order.phase : order.status);
export const ofProvider = (provider) => sign(PROVIDERS[provider.state] ?? 'off', provider.state === 'ok' ? 'OK' : provider.state ?? 'not known');

export function ofAlert(alert) {
  if (alert.cleared_at) return sign('good', 'cleared');
  return sign(alert.is_grave ? 'grave' : 'slow', alert.is_grave ? 'grave' : 'warning');
}

/** The words for the causes of dead letters. */
export const CAUSES = {
  retries_spent: 'Retries spent', deadline: 'Deadline passed', in_doubt: 'In doubt', delivery: 'Not delivered', unreadable: 'Unreadable',
  store_forgot: 'Store forgot', budget_spent: 'Budget spent',
};
/** What a replay does, in short. The order's own page has the sentence. */
export const REPLAYS = {
  calls_webhook: 'Calls again, free', resumes: 'Resumes the paid task', waits_first: 'Waits, then may pay', may_pay_twice: 'May pay twice', pays: 'Pays', not_allowed: 'Refused: not in targets.allow',
};

export const shortKey = (key) => String(key).slice(0, 12);
export const orderLink = (key, text) => el('a', { href: `#/order/${encodeURIComponent(key)}`, class: 'key' }, text ?? shortKey(key));
