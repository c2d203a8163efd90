// The dead letters, by filter and page by page, with actions for one, several or all of them.

import { ask, withQuery } from './ask.js';
import * as bulks from './bulks.js';
import { FILTERS, all, one, several, spentOn } from './actions.js';
import { unloaded } from './dialog.js';
import { button, clipped, el, fill, refill, scrolled, table } from './dom.js';
import { ago, at, count, now } from './figures.js';
import { CAUSES, REPLAYS, orderLink } from './status.js';

const PAGE = 50;
/** For this long after an action, changes count as the user's own, and the list follows them. */
const OWN_MS = 20_000;
/** The width from which the filters are always open. */
const WIDE = window.matchMedia('(min-width: 40.01rem)');

/** A moment that the user picked in the local time zone, in the form of the API. */
const toMoment = (local) => (local ? new Date(local).toISOString() : '');
function toLocal(moment) {
  const ms = Date.parse(moment);
  if (!Number.isFinite(ms)) return '';
  const date = new Date(ms);
  return new Date(ms - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

const hashOf = (query) => withQuery('#/dead', query);

function filterForm(filter) {
  const field = (name, label, input) => el('div', { class: 'field' }, el('label', { for: `by-${name}` }, label), input);
  const text = (name) => el('input', { id: `by-${name}`, name, value: filter[name] ?? '', autocomplete: 'off', spellcheck: 'false', maxlength: '256' });
  const moment = (name) => el('input', { id: `by-${name}`, name, type: 'datetime-local', value: toLocal(filter[name] ?? '') });
  const cause = el('select', { id: 'by-cause', name: 'cause' }, el('option', { value: '' }, 'Any'), Object.entries(CAUSES).map(([name, label]) => el('option', { value: name }, label)));
  cause.value = filter.cause ?? '';
  const form = el('form', { class: 'filters', 'aria-label': 'Filter', on: { submit: (event) => {
    event.preventDefault();
    const fields = Object.fromEntries(new FormData(form));
    location.hash = hashOf({ ...fields, before: toMoment(fields.before), since: toMoment(fields.since) });
  } } },
  field('cause', 'Cause', cause), field('kind', 'Kind', text('kind')), field('site', 'Site', text('site')), field('tenant', 'Tenant', text('tenant')),
  field('since', 'Dead since', moment('since')), field('before', 'Dead before', moment('before')),
  el('div', { class: 'acts' }, el('button', { type: 'submit', class: 'primary' }, 'Show'), el('a', { href: '#/dead' }, 'Clear')));
  // On a narrow screen the filters are folded, unless one of them is active.
  const folded = el('details', { class: 'folded' }, el('summary', {}, 'Filter'), form);
  const fold = () => { folded.open = WIDE.matches || Object.keys(filter).length > 0; };
  fold();
  return { node: folded, fold };
}

const reason = (letter) => el('span', { class: 'why' }, el('strong', {}, CAUSES[letter.cause] ?? letter.cause), el('br'), letter.why, letter.note ? el('span', { class: 'noted' }, letter.note) : null);

const CAN_PICK = 'tbody input[type="checkbox"]';

function rowOf(letter, picked, changed) {
  const drop = button('Drop…', () => one('drop', letter).then((done) => done && changed(true)), { class: 'small quiet', 'data-action': 'drop', 'aria-label': `Drop ${letter.key.slice(0, 12)}…` });
  if (letter.cause === 'unreadable') {
    return { cells: ['', el('span', { class: 'key' }, letter.key.slice(0, 12)), reason(letter), '', '', '', el('span', { class: 'acts' }, drop)] };
  }
  const pick = el('input', { type: 'checkbox', 'aria-label': `Pick ${letter.key.slice(0, 12)}`, on: { change: () => {
    if (pick.checked) picked.set(letter.key, letter);
    else picked.delete(letter.key);
    changed();
  } } });
  return { cells: [
    pick,
    orderLink(letter.key),
    reason(letter),
    el('span', { class: 'what' }, letter.kind, clipped(letter.site), el('span', { class: 'soft' }, clipped(letter.tenant))),
    [el('span', { class: 'narrow' }, 'Dead '), ago(letter.dead_ms)],
    [el('span', { class: 'narrow' }, 'Spent '), spentOn(letter, { isShort: true })],
    el('span', { class: 'acts' }, letter.on_replay === 'not_allowed' ? el('span', { class: 'soft' }, REPLAYS.not_allowed) : button('Replay…', () => one('replay', letter).then((done) => done && changed(true)), { class: 'small', 'data-action': 'replay', title: REPLAYS[letter.on_replay] ?? null, 'aria-label': `Replay ${letter.key.slice(0, 12)}…` }), drop),
  ] };
}

const HEADS = [{ name: 'Order' }, { name: 'Cause' }, { name: 'Kind, site, tenant' }, { name: 'Dead' }, { name: 'Spent', number: true }, { name: 'Actions', isUnseen: true }];

export function letters({ query }) {
  const filter = Object.fromEntries(FILTERS.filter((name) => query.get(name)).map((name) => [name, query.get(name)]));
  const after = query.get('after') ?? '';
  const leaving = new AbortController();
  const picked = new Map();
  let countThen = null;
  let ownAt = 0;

  const list = el('div', { 'aria-busy': 'true' }, el('p', { class: 'soft' }, 'Looking…'));
  const asOf = el('p', { class: 'soft', role: 'status' });
  const newer = el('p', { class: 'newer' });
  const some = el('div', { class: 'acts some', hidden: true });
  const forAll = [button('Replay all that match…', () => begin('replay')), button('Drop all that match…', () => begin('drop'), { class: 'quiet' })];
  const everything = el('div', { class: 'acts' }, forAll);

  async function begin(action) {
    const bulk = await all(action, filter);
    if (bulk) bulks.begun(bulk);
  }

  /** Whether the list may change: no rows are picked, no dialog is open, and no refusals are shown. */
  const isFree = () => picked.size === 0 && !document.querySelector('dialog[open]') && !list.querySelector('.refused');
  const follow = () => isFree() && load([], isFree);

  function changed(isDone = false) {
    if (isDone) ownAt = Date.now();
    if (isDone) load();
    some.hidden = picked.size === 0;
    const boxes = [...list.querySelectorAll(CAN_PICK)];
    whole.checked = boxes.length > 0 && boxes.every((box) => box.checked);
    whole.indeterminate = !whole.checked && picked.size > 0;
    const act = (action, given) => button(`${action === 'replay' ? 'Replay' : 'Drop'} ${count(picked.size)} picked…`, async () => {
      const result = await several(action, [...picked.values()]);
      if (!result) return;
      ownAt = Date.now();
      load(result.refused);
    }, given);
    refill(some, picked.size ? [act('replay', { class: 'primary' }), act('drop', { class: 'quiet' })] : null);
  }

  const whole = el('input', { type: 'checkbox', on: { change: () => {
    // Each row reports that it is picked, which also changes this checkbox.
    const isWanted = whole.checked;
    for (const box of list.querySelectorAll(CAN_PICK)) if (box.checked !== isWanted) box.click();
  } } });
  const heads = [{ name: el('label', { class: 'pick-all' }, whole, el('span', { class: 'unseen' }, 'Pick all on this page')) }, ...HEADS];

  /** Loads the list. `isWelcome` is called again when the response is there, because the user may have begun something. */
  async function load(refused = [], isWelcome = () => true) {
    list.setAttribute('aria-busy', 'true');
    try {
      const result = await ask(withQuery('/v1/admin/dead', { ...filter, after, limit: PAGE }), { signal: leaving.signal });
      if (!isWelcome()) return list.setAttribute('aria-busy', 'false');
      picked.clear();
      refill(list, refused.map(({ key, why }) => el('p', { class: 'error refused' }, `${key.slice(0, 12)}: ${why}`)), page(result));
      fill(asOf, 'As of ', at(now()), '.');
      refill(newer);
      changed();
      for (const act of forAll) act.disabled = !result.orders.length && !result.next && !after;
      countThen = null;
    } catch (error) {
      if (!leaving.signal.aborted) refill(list, unloaded(error), button('Try again', () => load()));
    }
    list.setAttribute('aria-busy', 'false');
  }

  function page({ orders, next }) {
    // A page may be empty although more pages follow: each request reads a limited number of records.
    const nothing = next ? 'No match so far; there are more dead letters to search.' : Object.keys(filter).length || after ? 'No dead letter matches.' : 'No dead letters. Nothing waits for a person.';
    return [
      orders.length ? scrolled('Dead letters', table('Dead letters', heads, orders.map((letter) => rowOf(letter, picked, changed)), { class: 'dead-letters' })) : el('p', { class: 'empty' }, nothing),
      el('nav', { class: 'pages', 'aria-label': 'Pages' }, after ? el('a', { href: hashOf(filter) }, 'First page') : null, next ? el('a', { href: hashOf({ ...filter, after: next }) }, orders.length ? 'Next page' : 'Look further') : null),
    ];
  }

  function update(snapshot) {
    countThen ??= snapshot.orders.dead;
    if (snapshot.orders.dead === countThen || list.getAttribute('aria-busy') === 'true') return;
    if (Date.now() - ownAt < OWN_MS && isFree()) follow();
    else if (!newer.hasChildNodes()) fill(newer, 'The dead letters have changed. ', button('Show them', () => load(), { class: 'small' }));
  }

  const filters = filterForm(filter);
  WIDE.addEventListener('change', filters.fold);
  const unheard = bulks.onEnd(follow);
  const close = () => {
    leaving.abort();
    unheard();
    WIDE.removeEventListener('change', filters.fold);
  };
  const node = el('div', {},
    el('div', { class: 'head' }, el('h1', {}, 'Dead letters'), asOf, button('Refresh', () => load(), { class: 'small' })),
    filters.node, newer, el('div', { class: 'bar' }, some, everything), list);
  load();
  return { title: 'Dead letters', node, update, load: () => (list.querySelector('[data-unloaded]') ? load() : follow()), close };
}
