// The pools: the level of each against its size, why it has that size, its demand, and its spending.

import { ask } from './ask.js';
import { unloaded } from './dialog.js';
import { el, facts, place } from './dom.js';
import { ago, count, millis, money, rate, share, span } from './figures.js';
import { gauge } from './plot.js';
import { sign } from './status.js';

/** How many snapshots pass between two updates: a pool changes by a few answers a minute. */
const EVERY = 5;

function standing(pool) {
  if (!pool.valid) return sign('bad', 'not valid here');
  if (!pool.enabled) return sign('off', 'switched off');
  if (!pool.level) return sign('going', 'not handled yet');
  const { fresh, on_their_way: coming, size, why } = pool.level;
  // Nothing is wanted, so nothing is full. Only the daemon's text says why.
  if (size === 0) return sign('off', why.includes('hours') ? 'off hours' : 'holds nothing');
  if (fresh >= size) return sign('good', 'full');
  if (pool.stopped) return sign('bad', pool.spent.incomplete && pool.price !== null ? 'spending not known' : 'price not known');
  if (why.includes('budget') && fresh + coming < size) return sign('slow', 'budget spent');
  return fresh === 0 && coming === 0 ? sign('bad', 'empty') : sign('going', 'being filled');
}

/** The spending. Refills without a known price, and what the store forgot, are missing from the sum, and do not count as 0. */
function spentWords({ money_micros: micros, unpriced, incomplete }) {
  if (micros === null) return 'not known';
  return unpriced > 0 || incomplete ? `at least ${money(micros)}` : money(micros);
}

function pool(one) {
  const { level, demand, spent } = one;
  return el('section', { class: 'card' },
    el('div', { class: 'head' }, el('h2', {}, one.name), standing(one)),
    el('p', { class: 'soft' }, `${one.kind} for ${one.tenant}`),
    level ? el('div', { class: 'level large' }, gauge({ value: level.fresh, more: level.on_their_way, wanted: level.size, label: `${level.fresh} fresh and ${level.on_their_way} on their way of ${level.size}` }),
      el('span', {}, `${count(level.fresh)} fresh, ${count(level.on_their_way)} on their way, of ${count(level.size)}`)) : null,
    level ? el('p', {}, level.why) : null,
    one.stopped && !level?.why.includes(one.stopped) ? el('p', { class: 'fault' }, one.stopped) : null,
    facts([
      ['Goal', one.size === undefined ? `${share(one.service_level)} served` : `size ${count(one.size)}`],
      level && ['Demand', `${rate(level.rate_per_s)}/s`],
      level && ['Lead', span(level.lead_ms)],
      ['Usable for', span(one.usable_ms)],
      ['Served', demand.hit_rate === undefined ? '–' : `${share(demand.hit_rate)} of ${count(demand.served + demand.missed)}`],
      ['Spent this hour', one.budget_per_hour_micros === undefined ? spentWords(spent) : `${spentWords(spent)} of ${money(one.budget_per_hour_micros)}`],
      ['Price of an answer', one.price === null ? 'not known' : `${one.price}\u00a0${one.currency}`],
      ['Refills this hour', count(spent.refills)],
      one.hours.length > 0 && ['Hours (UTC)', one.hours.join(', ')],
      level && ['Decided', ago(millis(level.at))],
      ['Kept by', one.kept_here ? 'this node' : 'another node'],
    ]),
    el('details', {}, el('summary', {}, 'Parameters'), facts(Object.entries(one.params))));
}

export function pools() {
  const leaving = new AbortController();
  const list = el('div', { class: 'cards' }, el('p', { class: 'soft' }, 'Looking…'));
  const shown = place(list);
  let seen = 0;

  async function load() {
    try {
      const response = await ask('/v1/pools', { signal: leaving.signal });
      shown(response.pools, (all) => (all.length ? all.map(pool) : el('p', { class: 'empty' }, 'No pool is set up. ', el('code', {}, 'quittance pool set'), ' sets one up.')));
    } catch (error) {
      if (!leaving.signal.aborted) shown(error.message, () => unloaded(error));
    }
  }

  const node = el('div', {}, el('div', { class: 'head' }, el('h1', {}, 'Pools')), list);
  load();
  const update = () => {
    seen += 1;
    if (seen % EVERY === 0) load();
  };
  return { title: 'Pools', node, update, load, close: () => leaving.abort() };
}
