// The overview of the node. It is built once, and each snapshot changes only what has changed.

import { resumeAll } from './actions.js';
import { button, el, facts, fill, place, say, scrolled, table } from './dom.js';
import { PRICE_NOT_KNOWN, ago, count, countShort, money as moneyIn, moneyShort, priced, rate, share, span, zone } from './figures.js';
import * as live from './live.js';
import { overTime, gauge, parts, spark } from './plot.js';
import { ofAlert, ofProvider, sign } from './status.js';

const PHASES = [['Queued', 'm4'], ['Held', 'm3'], ['Submitting', 'm5'], ['Solving', 'm1'], ['In doubt', 'm2']];
const WINDOWS = [['5 min', 300_000], ['15 min', 900_000], ['1 hour', 3_600_000]];
const SPARK_POINTS = 60;
const FROM_TO = 'from placed to solved';
/** Shows a figure, or why there is none. An unchanged figure is left alone. */
function put(node, figure) {
  if (node.textContent !== (figure.textContent ?? figure)) fill(node, figure);
}

function dial(label, traits = {}) {
  const [value, note, line] = [el('p', { class: 'figure' }, '–'), el('p', { class: 'note' }), spark()];
  const node = el('section', { class: 'dial', ...traits }, el('h2', {}, label), value, note, line.node);
  return { node, set: (figure, words, values) => { put(value, figure); say(note, words); line.update(values); } };
}

function card(title, id, ...inner) {
  return el('section', { class: 'card', 'aria-labelledby': id }, el('h2', { id }, title), inner);
}

function providers(snapshot) {
  const heads = [{ name: 'Provider', isRowHead: true }, { name: 'State' }, { name: 'Until' }, { name: 'Spacing', number: true }, { name: 'Why' }, { name: 'Balance', number: true }, { name: 'Threads in use', number: true }];
  return [
    scrolled('Providers', table('Providers', heads, snapshot.providers.map((one) => [
      el('a', { href: '#/providers' }, one.name), ofProvider(one), one.until_ms ? ago(one.until_ms) : '–', one.spacing_ms ? span(one.spacing_ms) : '–',
      one.fault ? el('span', {}, el('code', {}, one.fault.code), ` (${one.fault.class})`) : '–',
      one.balance_micros === null ? 'not known' : moneyIn(one.balance_micros, one.currency), one.threads ? `${count(one.threads.working)} of ${count(one.threads.total)}` : '–',
    ]))),
    snapshot.providers.some((one) => one.fault) ? button('Resume held orders…', resumeAll) : null,
  ];
}

export function poolRow(pool) {
  const level = pool.level;
  const demand = pool.demand ?? {};
  const bar = level ? gauge({ value: level.fresh, more: level.on_their_way, wanted: level.size, label: `${level.fresh} fresh and ${level.on_their_way} on their way of ${level.size}` }) : null;
  return [
    el('a', { href: '#/pools' }, pool.name),
    level ? el('div', { class: 'level' }, bar, el('span', {}, `${count(level.fresh)} + ${count(level.on_their_way)} of ${count(level.size)}`)) : 'not handled yet',
    level ? `${rate(level.rate_per_s)}/s` : '–',
    Number.isFinite(demand.hit_rate) ? share(demand.hit_rate) : '–',
  ];
}

function nodes(list) {
  const heads = [{ name: 'Node', isRowHead: true }, { name: 'State' }, { name: 'In hand', number: true }, { name: 'Submitted', number: true }, { name: 'Answered', number: true }, { name: 'Clock', number: true }];
  return scrolled('Nodes', table('Nodes', heads, list.map((node) => {
    const marks = [node.is_paused && 'paused', node.store_was_away && 'store was away', node.has_spilled && 'spill not empty'].filter(Boolean);
    return [
      node.is_here ? `${node.name} (this one)` : node.name,
      el('span', {}, node.is_alive ? sign('good', 'alive') : sign('bad', 'gone'), marks.length ? ` ${marks.join(', ')}` : null),
      count(node.in_hand), count(node.submitted), count(node.answered), span(node.skew_ms ?? 0),
    ];
  })));
}

function alertsStrip(list) {
  return el('ul', { class: 'strip' }, list.map((alert) =>
    el('li', { class: alert.is_grave ? 'grave' : 'slow' }, ofAlert(alert), ' ', el('a', { href: '#/alerts' }, alert.words), ' ', el('span', { class: 'soft' }, ago(alert.raised_ms)))));
}

/** Money: what was used and what was wasted add up to what was spent. */
function money(today) {
  const write = ({ value, unpriced }) => priced(value, unpriced, { write: moneyShort, isShort: true });
  // The missing prices of used answers: those of all answers without the wasted ones.
  const unpriced = Math.max(0, today.unpriced - today.wasted_unpriced);
  const used = Math.max(0, (today.cost_micros ?? 0) - (today.wasted_micros ?? 0));
  const bought = [
    { name: 'Used', value: used === 0 && unpriced > 0 ? null : used, unpriced, mark: 'm1' },
    { name: 'Wasted', value: today.wasted_micros, unpriced: today.wasted_unpriced, mark: 'm3' },
    { name: 'Saved', value: today.saved_micros, mark: 'm2' },
  ];
  const origins = [['Bought', today.paid], ['Joined', today.joined], ['Cached', today.cached], ['From stock', today.from_stock]];
  const counts = [['Asked', today.asked], ...origins, ['Retried', today.retried], ['Possible doubles', today.possible_doubles]];
  return [
    parts(bought, 'Money today, in millionths'),
    el('dl', { class: 'keyed' }, bought.map((part) => el('div', { class: part.mark }, el('dt', {}, part.name), el('dd', {}, write(part))))),
    facts([['Spent: used and wasted', write({ value: today.cost_micros, unpriced: today.unpriced })], ...counts.map(([name, value]) => [name, count(value)])]),
  ];
}

export function overview() {
  const dials = {
    open: dial('Open orders'), solved: dial('Solved'), latency: dial('Latency'),
    spent: dial('Spent today'), saved: dial('Saved today'), dead: dial('Dead letters', { id: 'dial-dead' }),
  };
  const line = (name, field, mark) => ({ name, mark, read: (point) => point[field] });
  const throughput = overTime({ title: 'Throughput', unit: 'per second', format: rate, series: [line('Asked', 'asked', 'm4'), line('Paid', 'paid', 'm2'), line('Solved', 'solved', 'm1'), line('Failed', 'failed', 'm3')] });
  const latency = overTime({ title: 'Latency', unit: FROM_TO, format: span, isSpan: true, nothing: 'Nothing was solved in this time', series: [line('Half within', 'p50', 'm1'), line('95 % within', 'p95', 'm2')] });
  const origins = overTime({ title: 'Paid against saved', unit: 'placements per second', format: rate, stacked: true, series: [line('Paid', 'paid', 'm1'), line('Joined', 'joined', 'm2'), line('Cached', 'cached', 'm4'), line('From stock', 'from_stock', 'm5')] });
  const plots = [throughput, latency, origins];

  let spanMs = WINDOWS[0][1];
  const choices = el('div', { class: 'choices', role: 'group', 'aria-label': 'How far back the plots go' }, WINDOWS.map(([words, ms]) =>
    button(words, (event) => {
      spanMs = ms;
      for (const other of choices.children) other.setAttribute('aria-pressed', String(other === event.currentTarget));
      if (live.now()) draw(live.now());
    }, { 'aria-pressed': String(ms === spanMs) })));

  const holder = {};
  const spot = (name, given) => (holder[name] = place(holder[`${name}Node`] = el('div', given)));
  ['alerts', 'phases', 'money', 'providers', 'pools', 'nodes'].forEach((name) => spot(name));
  const about = el('p', { class: 'soft about' }, 'Waiting for the first figures…');

  const node = el('div', { class: 'overview' },
    el('div', { class: 'head' }, el('h1', {}, 'Overview'), about),
    holder.alertsNode,
    el('div', { class: 'dials' }, Object.values(dials).map((one) => one.node)),
    el('div', { class: 'head' }, el('h2', {}, 'The recent past'), el('span', { class: 'soft' }, `Times are ${zone()}`), choices),
    el('div', { class: 'plots' }, plots.map((plot) => plot.node), card('Orders by phase', 'of-phases', holder.phasesNode)),
    el('div', { class: 'cards' },
      card('Today (UTC)', 'of-today', holder.moneyNode),
      card('Providers', 'of-providers', holder.providersNode),
      card('Pools', 'of-pools', holder.poolsNode),
      card('Nodes', 'of-nodes', holder.nodesNode)));

  function draw(snapshot) {
    const to = snapshot.at_ms;
    // Each node measures the orders that it solved itself. Everything else is of all nodes.
    latency.setUnit(snapshot.nodes.length > 1 ? `${FROM_TO}, on ${snapshot.node.name} alone` : FROM_TO);
    for (const plot of plots) plot.update(live.history(), to - spanMs, to);
  }

  function figures(snapshot) {
    const { orders, rates, latency_ms: times, today } = snapshot;
    const recent = live.history().slice(-SPARK_POINTS);
    dials.open.set(countShort(orders.open), `${rate(rates.asked)}/s asked`, recent.map((point) => point.open));
    dials.solved.set(`${rate(rates.solved)}/s`, `${countShort(today.solved)} today`, recent.map((point) => point.solved));
    dials.latency.set(span(times.p50), (times.count ? `95 % within ${span(times.p95)}, of the last 5 min` : 'nothing solved in the last 5 min') + (snapshot.nodes.length > 1 ? ', on this node' : ''), recent.map((point) => point.p50));
    const onTile = { write: moneyShort, isShort: true };
    const unless = (micros) => (micros === null ? `${PRICE_NOT_KNOWN}; ` : '');
    const missing = today.unpriced && today.cost_micros ? `price of ${countShort(today.unpriced)} not known; ` : '';
    dials.spent.set(priced(today.cost_micros, today.unpriced, onTile), `${missing}${unless(today.cost_micros)}${countShort(today.paid)} paid, ${countShort(today.retried)} retried`, recent.map((point) => point.paid));
    const saved = today.joined + today.cached + today.from_stock;
    dials.saved.set(priced(today.saved_micros, 0, onTile), `${unless(today.saved_micros)}${countShort(saved)} of ${countShort(today.asked)} not bought again`, recent.map((point) => point.joined + point.cached + point.from_stock));
    dials.dead.set(countShort(orders.dead), orders.dead ? 'wait for a person' : 'nothing waits for a person', recent.map((point) => point.dead));
  }

  function update(snapshot) {
    say(about, `${snapshot.node.name}, version ${snapshot.node.version}, up ${span(snapshot.node.uptime_s * 1000)}; store ${snapshot.store.kind ?? ''} ${snapshot.store.is_up ? 'is up' : 'is away'}`);
    figures(snapshot);
    draw(snapshot);
    const raised = snapshot.alerts.filter((alert) => !alert.cleared_at);
    holder.alerts(raised, (list) => (list.length ? alertsStrip(list) : null));
    holder.phases(snapshot.orders, ({ phases, is_sampled: isSampled }) => {
      const all = PHASES.map(([name, mark]) => ({ name, mark, value: phases[name.toLowerCase().replace(' ', '_')] ?? 0 }));
      return [parts(all, 'Open orders by phase'), el('dl', { class: 'keyed' }, all.map((part) => el('div', { class: part.mark }, el('dt', {}, part.name), el('dd', {}, count(part.value))))),
        isSampled ? el('p', { class: 'hint' }, 'Counted on a sample, and scaled up.') : null];
    });
    holder.money(snapshot.today, money);
    holder.providers(snapshot.providers, () => (snapshot.providers.length ? providers(snapshot) : el('p', { class: 'soft' }, 'No provider is configured.')));
    const heads = [{ name: 'Pool', isRowHead: true }, { name: 'Level against size' }, { name: 'Demand', number: true }, { name: 'Served', number: true }];
    holder.pools(snapshot.pools, (list) => (list.length ? scrolled('Pools', table('Pools', heads, list.map(poolRow))) : el('p', { class: 'soft' }, 'No pool is set up.')));
    holder.nodes(snapshot.nodes, nodes);
  }

  function close() {
    plots.forEach((plot) => plot.close());
  }
  return { title: 'Overview', node, update, close };
}
