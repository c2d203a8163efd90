// The budgets: what each allows in its period, what is spent and held of it, why it is stopped, and when it is used up.

import { ask } from './ask.js';
import { unloaded } from './dialog.js';
import { el, facts, place } from './dom.js';
import { ago, count, millis, money, priced } from './figures.js';
import { gauge } from './plot.js';
import { sign } from './status.js';

/** How many snapshots pass between two updates. */
const EVERY = 5;
const AT_LIMIT = { refuse: 'orders are refused', wait: 'orders wait for the next period', cheaper_provider: 'orders go to a cheaper provider, or are refused' };
const PARTS = ['tenant', 'target', 'kind', 'provider', 'pool'];

function standing(budget) {
  if (budget.stopped) return sign('bad', 'stopped');
  return budget.runs_out_ms === null ? sign('good', 'OK') : sign('slow', 'runs out');
}

/** What the budget counts. */
function scope(budget) {
  const parts = PARTS.filter((part) => budget[part] !== null).map((part) => `${part} ${budget[part]}`);
  return parts.length ? parts.join(', ') : 'all orders';
}

function runsOut(budget) {
  if (budget.stopped) return 'nothing is bought now';
  if (budget.runs_out_ms !== null) return ago(budget.runs_out_ms);
  return budget.spent_micros === null ? 'not known' : 'not in this period';
}

function shownBudget(one) {
  const amount = (micros) => money(micros, one.currency);
  const write = { write: amount };
  const level = one.spent_micros === null ? null : gauge({ value: one.spent_micros, more: one.reserved_micros, wanted: one.limit_micros, label: `${amount(one.spent_micros)} spent and ${amount(one.reserved_micros)} held of ${amount(one.limit_micros)}` });
  return el('section', { class: 'card' },
    el('div', { class: 'head' }, el('h2', {}, one.name), standing(one)),
    el('p', { class: 'soft' }, `Counts ${scope(one)}`),
    el('div', { class: 'level large' }, level,
      el('span', {}, priced(one.spent_micros, 0, write), ` of ${amount(one.limit_micros)} this ${one.period}`)),
    one.stopped ? el('p', { class: 'fault' }, one.stopped) : null,
    facts([
      ['Left', amount(one.left_micros)],
      ['Held for attempts', amount(one.reserved_micros)],
      one.unpriced > 0 && ['Cost not known', `${count(one.unpriced)} attempts, at the expected price`],
      ['Runs out', runsOut(one)],
      ['Begins again', ago(millis(one.ends))],
      ['At the limit', AT_LIMIT[one.at_limit] ?? one.at_limit],
    ]));
}

export function budgets() {
  const leaving = new AbortController();
  const list = el('div', { class: 'cards' }, el('p', { class: 'soft' }, 'Looking…'));
  const shown = place(list);
  let seen = 0;

  async function load() {
    try {
      const response = await ask('/v1/admin/budgets', { signal: leaving.signal });
      shown(response.budgets, (all) => (all.length ? all.map(shownBudget) : el('p', { class: 'empty' }, 'No budget is configured: add a ', el('code', {}, '[[budget]]'), ' to the configuration.')));
    } catch (error) {
      if (!leaving.signal.aborted) shown(error.message, () => unloaded(error));
    }
  }

  const node = el('div', {}, el('div', { class: 'head' }, el('h1', {}, 'Budgets'), el('p', { class: 'soft' }, 'Periods begin in UTC.')), list);
  load();
  const update = () => {
    seen += 1;
    if (seen % EVERY === 0) load();
  };
  return { title: 'Budgets', node, update, load, close: () => leaving.abort() };
}
