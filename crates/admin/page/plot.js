// Plots of a few SVG elements: lines and stacked areas over time, columns, and bars. Each describes itself in a sentence and
// has its figures as a table. No two series differ by colour alone.

import { el, fill, say, scrolled, svg, table } from './dom.js';
import { hourAndMinute, timeOfDay, zone } from './figures.js';

/** The left margin: the longest label, times the largest width of a character. */
const LEFT_MIN = 46;
const CHAR_WIDTH = 6.6;
const RIGHT = 20;
const TOP = 10;
const BOTTOM = 22;
/** Neighbours that are further apart have a gap between them: nothing was measured then. */
const HOLE_MS = 16_000;

/** Usual steps of time, from a millisecond to an hour. */
const SPANS = [1, 2, 5, 10, 20, 50, 100, 200, 500, ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600].map((s) => s * 1000)];
/** The smallest step: less than a tenth is not written. */
const STEP_MIN = 0.1;

/** The next round number that is no less than `most`, and the steps that lead to it. */
function scale(most, isSpan) {
  if (!(most > 0)) return { top: 1, steps: [0, 1] };
  const size = 10 ** Math.floor(Math.log10(most / 3));
  const round = isSpan ? SPANS : [1, 2, 5, 10].map((n) => Math.max(STEP_MIN, n * size));
  const step = round.find((n) => most / n <= 4) ?? Math.ceil(most / 4 / round.at(-1)) * round.at(-1);
  const count = Math.ceil(most / step - 1e-9);
  return { top: count * step, steps: Array.from({ length: count + 1 }, (_, n) => n * step) };
}

function timeSteps(from, to) {
  const choices = [60, 120, 300, 600, 900, 1800].map((s) => s * 1000);
  const step = choices.find((ms) => (to - from) / ms <= 6) ?? 3_600_000;
  const steps = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) steps.push(at);
  return steps;
}

const round = (n) => Math.round(n * 10) / 10;

/** Runs of neighbours with values. Without a measurement there is no line. */
function runs(points, read) {
  const found = [[]];
  for (const point of points) {
    if (found.at(-1).length && point.at - found.at(-1).at(-1).at > HOLE_MS) found.push([]);
    if (Number.isFinite(read(point))) found.at(-1).push(point);
    else if (found.at(-1).length) found.push([]);
  }
  return found.filter((run) => run.length);
}

/**
 * A plot over time. `series`: {name, read(point), mark} with `mark` one of m1..m4, which is a colour and a stroke.
 * `update(points, from, to)` draws; points have `at`.
 */
export function overTime({ title, unit, series, format, stacked = false, isSpan = false, nothing = 'Nothing measured yet' }) {
  const drawing = svg('svg', { role: 'img', class: 'plot', preserveAspectRatio: 'none' });
  const cursor = svg('line', { class: 'cursor', y1: TOP });
  const values = series.map(() => el('span', { class: 'value' }));
  const when = el('span', { class: 'moment' });
  const legend = el('ul', { class: 'legend' }, series.map((one, n) =>
    el('li', {}, svg('svg', { class: `swatch ${one.mark}`, viewBox: '0 0 18 10', 'aria-hidden': 'true' },
      stacked ? svg('rect', { width: 18, height: 10, class: `area ${one.mark}` }) : svg('line', { x1: 0, x2: 18, y1: 5, y2: 5, class: `stroke ${one.mark}` })),
    el('span', {}, one.name), values[n])));
  const figures = scrolled(`${title}, as a table`, null);
  figures.classList.add('figures');
  const unitNode = el('span', { class: 'unit' }, unit);
  const more = el('details', { class: 'as-table', on: { toggle: () => more.open && tabulate() } }, el('summary', {}, 'As a table'), figures);
  const node = el('figure', { class: 'plot-of' }, el('figcaption', {}, el('h3', {}, title), unitNode, when), legend, drawing, more);

  let shown = { points: [], from: 0, to: 1 };
  let pointed = null;
  let box = { width: 0, height: 0 };
  let left = LEFT_MIN;

  const x = (at) => left + ((at - shown.from) / Math.max(1, shown.to - shown.from)) * (box.width - left - RIGHT);
  const nearest = (at) => shown.points.reduce((best, point) => (!best || Math.abs(point.at - at) < Math.abs(best.at - at) ? point : best), null);

  function label() {
    const point = pointed === null ? shown.points.at(-1) : nearest(pointed);
    series.forEach((one, n) => say(values[n], point ? format(one.read(point)) : '–'));
    say(when, point && pointed !== null ? timeOfDay(point.at) : '');
    const isOut = !point || pointed === null;
    cursor.setAttribute('visibility', isOut ? 'hidden' : 'visible');
    if (!isOut) for (const end of ['x1', 'x2']) cursor.setAttribute(end, round(x(point.at)));
  }

  /** Every plotted point, the newest first. The table is built again only when there is a new point. */
  let tabled = '';
  function tabulate() {
    const { points } = shown;
    const which = `${points.length} ${points[0]?.at} ${points.at(-1)?.at}`;
    if (which === tabled) return;
    tabled = which;
    fill(figures, table(title, [{ name: `Time (${zone()})`, isRowHead: true }, ...series.map(({ name }) => ({ name, number: true }))],
      points.toReversed().map((point) => [timeOfDay(point.at), ...series.map((one) => format(one.read(point)))])));
  }

  function shapes(points, y) {
    if (!stacked) {
      return series.map((one) => runs(points, one.read).map((run) => {
        const line = run.map((point) => `${round(x(point.at))},${round(y(one.read(point)))}`);
        if (line.length === 1) return svg('circle', { cx: line[0].split(',')[0], cy: line[0].split(',')[1], r: 2, class: `dot ${one.mark}` });
        return svg('polyline', { points: line.join(' '), class: `stroke ${one.mark}` });
      }));
    }
    const below = new Map(points.map((point) => [point, 0]));
    const edge = (run) => run.map((point) => `${round(x(point.at))},${round(y(below.get(point)))}`);
    const all = runs(points, () => 0);
    return series.map((one) => {
      const bottoms = all.map(edge);
      for (const point of points) below.set(point, below.get(point) + (one.read(point) || 0));
      return all.map((run, n) => svg('polygon', { points: [...edge(run), ...bottoms[n].reverse()].join(' '), class: `area ${one.mark}` }));
    });
  }

  function draw() {
    const { points, from, to } = shown;
    const { width, height } = box;
    if (!width) return;
    const high = (point) => {
      const all = series.map((one) => one.read(point) || 0);
      return stacked ? all.reduce((sum, n) => sum + n, 0) : Math.max(...all);
    };
    const isMeasured = points.some((point) => series.some((one) => Number.isFinite(one.read(point))));
    const { top, steps: all } = scale(Math.max(0, ...points.map(high)), isSpan);
    // Without values there is no scale.
    const steps = isMeasured ? all : [0];
    left = Math.max(LEFT_MIN, 12 + CHAR_WIDTH * Math.max(...steps.map((step) => format(step).length)));
    const y = (value) => height - BOTTOM - (value / top) * (height - TOP - BOTTOM);
    drawing.setAttribute('viewBox', `0 0 ${width} ${height}`);
    cursor.setAttribute('y2', height - BOTTOM);
    fill(drawing,
      steps.map((step) => [
        svg('line', { class: step === 0 ? 'axis' : 'rule', x1: left, x2: width - RIGHT, y1: round(y(step)), y2: round(y(step)) }),
        isMeasured ? svg('text', { class: 'tick', x: left - 8, y: round(y(step)) + 4, 'text-anchor': 'end' }, format(step)) : null,
      ]),
      timeSteps(from, to).map((at) => svg('text', { class: 'tick', x: round(x(at)), y: height - 5, 'text-anchor': 'middle' }, hourAndMinute(at))),
      isMeasured ? shapes(points, y) : svg('text', { class: 'tick', x: width / 2, y: height / 2, 'text-anchor': 'middle' }, nothing),
      cursor);
    const latest = points.at(-1);
    const summary = isMeasured ? series.map((one) => `${one.name} ${format(one.read(latest))}, at most ${format(Math.max(0, ...points.map((point) => one.read(point) || 0)))}`).join('; ') : nothing.toLowerCase();
    drawing.setAttribute('aria-label', `${title}, ${unitNode.textContent}: ${summary}.`);
    label();
    if (more.open) tabulate();
  }

  drawing.addEventListener('pointermove', (event) => {
    const edge = drawing.getBoundingClientRect();
    pointed = shown.from + ((event.clientX - edge.left - left) / (edge.width - left - RIGHT)) * (shown.to - shown.from);
    label();
  });
  drawing.addEventListener('pointerleave', () => {
    pointed = null;
    label();
  });
  const sizes = new ResizeObserver(([entry]) => {
    const { width, height } = entry.contentRect;
    if (round(width) === box.width && round(height) === box.height) return;
    box = { width: round(width), height: round(height) };
    draw();
  });
  sizes.observe(drawing);

  return {
    node,
    setUnit: (words) => say(unitNode, words),
    update(points, from, to) {
      shown = { points: points.filter((point) => point.at >= from && point.at <= to), from, to };
      draw();
    },
    close: () => sizes.disconnect(),
  };
}

/** One bar with several parts, each {name, value, mark}. */
export function parts(all, title) {
  const sum = all.reduce((total, part) => total + (part.value ?? 0), 0);
  let from = 0;
  const bars = all.map((part) => {
    const width = sum ? ((part.value ?? 0) / sum) * 100 : 0;
    const bar = svg('rect', { x: round(from), width: round(width), y: 0, height: 10, class: `area ${part.mark}` });
    from += width;
    return bar;
  });
  const label = `${title}: ${all.map((part) => `${part.name} ${part.value ?? 'not known'}`).join(', ')}`;
  return svg('svg', { class: 'parts', viewBox: '0 0 100 10', preserveAspectRatio: 'none', role: 'img', 'aria-label': label },
    svg('rect', { width: 100, height: 10, class: 'empty' }), bars);
}

/** How full something is, with a mark at the wanted level; `more` is what is on its way. */
export function gauge({ value, more = 0, wanted, most, label }) {
  const top = Math.max(1, most ?? 0, value + more, wanted ?? 0);
  const width = (n) => round((n / top) * 100);
  return svg('svg', { class: 'gauge', viewBox: '0 0 100 10', preserveAspectRatio: 'none', role: 'img', 'aria-label': label },
    svg('rect', { width: 100, height: 10, class: 'empty' }),
    svg('rect', { width: width(value), height: 10, class: 'area m1' }),
    svg('rect', { x: width(value), width: width(more), height: 10, class: 'area m2' }),
    wanted === undefined ? null : svg('rect', { x: Math.min(99, width(wanted)), width: 1, height: 10, class: 'wanted' }));
}

/** Bars for named things, the largest first: {name, parts: [{name, value, mark}], text}. */
export function bars(rows, title, { hasLongNames = false } = {}) {
  const most = Math.max(0, ...rows.map((row) => row.parts.reduce((sum, part) => sum + part.value, 0)));
  return el('ul', { class: hasLongNames ? 'bars long' : 'bars', 'aria-label': title }, rows.map((row) => {
    let from = 0;
    const shapes = row.parts.map((part) => {
      const width = most ? (part.value / most) * 100 : 0;
      const shape = svg('rect', { x: round(from), width: round(width), height: 10, class: `area ${part.mark}` });
      from += width;
      return shape;
    });
    return el('li', {}, el('span', { class: 'name', title: row.name }, row.name),
      svg('svg', { viewBox: '0 0 100 10', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, svg('rect', { width: 100, height: 10, class: 'empty' }), shapes),
      el('span', { class: 'value' }, row.text));
  }));
}

/** A line without axes, only for the eye: the figure is beside it. Without a value there is no line. */
export function spark() {
  const line = svg('path', { class: 'stroke m1' });
  const node = svg('svg', { class: 'spark', viewBox: '0 0 100 24', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, line);
  return {
    node,
    update(values) {
      const points = values.map((value, at) => ({ at, value }));
      const most = Math.max(1e-9, ...values.filter(Number.isFinite));
      const last = Math.max(1, values.length - 1);
      const place = ({ at, value }) => `${round((at / last) * 100)},${round(22 - (value / most) * 20)}`;
      // The line of a single point is as long as the round end of its stroke.
      line.setAttribute('d', runs(points, (point) => point.value).map((run) => `M${(run.length > 1 ? run : [run[0], run[0]]).map(place).join('L')}`).join(''));
    },
  };
}
