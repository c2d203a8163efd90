// The usage: what was asked, paid, saved and wasted in a range of days, grouped as the user likes, as bars and as a table.

import { ask, withQuery } from './ask.js';
import { csv, download } from './csv.js';
import { unloaded } from './dialog.js';
import { button, clipped, el, facts, fill, scrolled, table } from './dom.js';
import { count, money, moneyShort, now, priced, share, span, words } from './figures.js';
import { bars } from './plot.js';

const BY = ['day', 'tenant', 'site', 'kind', 'provider'];
const LINES = ['asked', 'joined', 'cached', 'from_stock', 'paid', 'rejected', 'retried', 'recovered_by_poll', 'in_doubt_settled', 'possible_doubles', 'wasted', 'dead'];
/** What was spent in another currency, before the account had the present one. */
const spentBefore = ({ currency, cost_micros: micros, unpriced }) => micros === null ? `an amount of ${currency} that is not known` : `${unpriced ? 'at least ' : ''}${money(micros, currency)}`;
/** Each sum of money, and the counter of the answers that are missing from it. */
const UNPRICED = { cost_micros: 'unpriced', wasted_micros: 'wasted_unpriced', saved_micros: undefined };
const MONEY = Object.keys(UNPRICED);
const MONEY_HEADS = { cost_micros: 'Spent', saved_micros: 'Saved', wasted_micros: 'Of that wasted' };
const BARS_MAX = 20;
const DAY_MS = 86_400_000;

/** The day of a moment: usage is counted by UTC days. */
const day = (ms) => new Date(ms).toISOString().slice(0, 10);
const title = (name) => words(name).replace(/^./, (c) => c.toUpperCase());
const hashOf = (query) => withQuery('#/usage', query);

function form(asked) {
  const date = (name, label) => el('div', { class: 'field' }, el('label', { for: `usage-${name}` }, label), el('input', { id: `usage-${name}`, name, type: 'date', value: asked[name], required: true }));
  const by = el('fieldset', { class: 'field' }, el('legend', {}, 'By'), BY.map((name) => {
    const box = el('input', { type: 'checkbox', name: 'by', value: name });
    box.checked = asked.by.includes(name);
    return el('label', { class: 'check' }, box, ' ', title(name));
  }));
  const today = now();
  const range = (label, from) => el('a', { href: hashOf({ from: day(from), to: day(today), by: asked.by.join(',') }) }, label);
  const node = el('form', { class: 'filters', 'aria-label': 'What to show', on: { submit: (event) => {
    event.preventDefault();
    const fields = new FormData(node);
    location.hash = hashOf({ from: fields.get('from'), to: fields.get('to'), by: fields.getAll('by').join(',') || 'none' });
  } } }, date('from', 'From'), date('to', 'To'), by, el('div', { class: 'acts' }, el('button', { type: 'submit', class: 'primary' }, 'Show'),
    range('Today', today), range('7 days', today - 6 * DAY_MS), range('30 days', today - 29 * DAY_MS)));
  return node;
}

const nameOf = (row, by) => by.map((name) => row[name] || '(none)').join(' · ');

/** A sum, with a mark if some of its answers have no price. */
const amount = (row, name, given) => priced(row[name], row[UNPRICED[name]], given);

/** Rows of days are sorted by day. All others are sorted by money, and without money by placements. */
function inOrder({ by, rows, all }) {
  const most = (a, b) => b.cost_micros - a.cost_micros || b.saved_micros - a.saved_micros || b.asked - a.asked;
  const days = (a, b) => (by[0] !== 'day' || a.day === b.day ? 0 : a.day < b.day ? -1 : 1);
  return by.length ? [...rows].sort((a, b) => days(a, b) || most(a, b)) : [all];
}

/** The rows that are shown: the last days if they are sorted by day, otherwise the largest. */
function fewest(rows, by) {
  if (by[0] !== 'day' || rows.length <= BARS_MAX) return rows.slice(0, BARS_MAX);
  const last = rows.filter((row) => row.day === rows.at(-1).day);
  return last.length >= BARS_MAX ? last.slice(0, BARS_MAX) : rows.slice(-BARS_MAX);
}

function plot(report) {
  const rows = inOrder(report);
  const shown = fewest(rows, report.by);
  const hasMoney = rows.some((row) => row.cost_micros || row.saved_micros);
  const pair = (row) => (hasMoney ? [row.cost_micros ?? 0, row.saved_micros ?? 0] : [row.paid, row.joined + row.cached + row.from_stock]);
  const text = (row, name, value) => (!hasMoney ? count(value) : row[name] === null ? '–' : `${row[UNPRICED[name]] > 0 ? '≥ ' : ''}${moneyShort(value)}`);
  return el('figure', { class: 'plot-of wide' },
    el('figcaption', {}, el('h2', {}, hasMoney ? 'Money spent and saved' : 'Paid, and not paid again'),
      el('span', { class: 'unit' }, shown.length < rows.length ? `${shown.length} of ${count(rows.length)}; the table has all` : '')),
    el('dl', { class: 'keyed' }, el('div', { class: 'm1' }, el('dt', {}, hasMoney ? 'Spent' : 'Paid')), el('div', { class: 'm2' }, el('dt', {}, hasMoney ? 'Saved' : 'Not paid again'))),
    bars(shown.map((row) => {
      const [spent, saved] = pair(row);
      return { name: report.by.length ? nameOf(row, report.by) : 'All', parts: [{ value: spent, mark: 'm1' }, { value: saved, mark: 'm2' }], text: `${text(row, 'cost_micros', spent)} / ${text(row, 'saved_micros', saved)}` };
    }), 'Bars', { hasLongNames: report.by.length > 1 }));
}

/** The table, money first: the rest is wider than most screens, and scrolls. */
function document(report) {
  const names = report.by.map((name, n) => ({ name: title(name), isRowHead: n === 0 }));
  const heads = [...names, ...MONEY.map((name) => ({ name: MONEY_HEADS[name], number: true })), ...LINES.map((name) => ({ name: title(name), number: true }))];
  const cells = (row) => [...MONEY.map((name) => amount(row, name, { isShort: true })), ...LINES.map((name) => count(row[name]))];
  const rows = report.by.length ? inOrder(report).map((row) => [...report.by.map((name) => clipped(row[name] || '(none)')), ...cells(row)]) : [cells(report.all)];
  return scrolled('The usage', table('The usage', heads, rows, { class: 'document' }));
}

/** The second table of a report by provider: what an answer costs there, how long it takes, and how many tasks come to one. */
function comparison(report) {
  if (!report.by.includes('provider')) return null;
  const names = report.by.map((name, n) => ({ name: title(name), isRowHead: n === 0 }));
  const figures = ['Paid', 'Solved', 'Price per answer', 'Half within', '95 % within', 'Success', 'Rejected', 'Reported bad'];
  const part = (permille) => (permille === null ? '–' : share(permille / 1000));
  const rows = inOrder(report).map((row) => {
    const { price_per_answer_micros: price, p50_ms: half, p95_ms: most, success_permille: success, rejected_permille: rejected } = row.comparison;
    return [...report.by.map((name) => clipped(row[name] || '(none)')), count(row.paid), count(row.solved), priced(price, 0, { isShort: true }), span(half), span(most), part(success), part(rejected), count(row.reported_bad)];
  });
  return [
    el('div', { class: 'head' }, el('h2', {}, 'Providers compared')),
    scrolled('Providers compared', table('Providers compared', [...names, ...figures.map((name) => ({ name, number: true }))], rows, { class: 'document' })),
    el('p', { class: 'hint' }, 'Success is solved / paid, rejected is of all attempts. Times are measured by this node since its start; they are not kept by day, tenant or site.'),
  ];
}

function save(report) {
  const { by } = report;
  const fields = Object.keys(report.all).filter((name) => typeof report.all[name] === 'number');
  const rows = (by.length ? report.rows : [report.all]).map((row) => [...by.map((name) => row[name] ?? ''), ...fields.map((name) => row[name])]);
  download(`quittance-${report.from}-${report.to}.csv`, csv([...by, ...fields], rows));
}

export function usage({ query }) {
  const today = day(now());
  const by = query.get('by') ?? 'day';
  const asked = { from: query.get('from') || day(now() - 6 * DAY_MS), to: query.get('to') || today, by: by.split(',').filter((name) => BY.includes(name)) };
  const leaving = new AbortController();
  const shown = el('div', { 'aria-busy': 'true' }, el('p', { class: 'soft' }, 'Adding up…'));

  async function load() {
    try {
      const report = await ask(withQuery('/v1/admin/usage', { from: asked.from, to: asked.to, by: asked.by.join(',') }), { signal: leaving.signal });
      const { all } = report;
      const sum = (name) => amount(all, name);
      const isEmpty = !report.rows.length && !all.asked;
      const free = all.joined + all.cached + all.from_stock;
      fill(shown,
        facts([['Asked', count(all.asked)], ['Paid', count(all.paid)], ['Not paid again', `${count(free)} (${share(all.asked ? free / all.asked : 0)})`], ['Spent', sum('cost_micros')], ['Of that wasted', sum('wasted_micros')], ['Saved', sum('saved_micros')], ['Possible doubles', count(all.possible_doubles)], ['Dead', count(all.dead)]]),
        isEmpty ? el('p', { class: 'empty' }, 'No orders were placed in these days.') : [
          all.unpriced && all.cost_micros ? el('p', { class: 'hint' }, `The price of ${count(all.unpriced)} attempts that were or may have been charged is not known: callbacks contain no price, some providers never report one, and a task that was never answered has none. Set [prices], and answers that come are counted.`) : null,
          report.other_currencies.length ? el('p', { class: 'hint' }, `In other currencies: spent ${report.other_currencies.map(spentBefore).join(' and ')}. It is in none of these sums, which are in ${report.currency}.`) : null,
          plot(report),
          el('div', { class: 'head' }, el('h2', {}, 'In figures'), button('Download as CSV', () => save(report), { class: 'small' })),
          document(report),
          comparison(report),
        ],
        report.left_out ? el('p', { class: 'hint' }, `${count(report.left_out)} more rows were left out: take fewer days, or fewer parts.`) : null);
    } catch (error) {
      if (!leaving.signal.aborted) fill(shown, unloaded(error));
    }
    shown.setAttribute('aria-busy', 'false');
  }

  const node = el('div', {}, el('div', { class: 'head' }, el('h1', {}, 'Usage'), el('p', { class: 'soft' }, 'Days are UTC.'), button('Refresh', load, { class: 'small' })), form(asked), shown);
  load();
  return { title: 'Usage', node, load, close: () => leaving.abort() };
}
