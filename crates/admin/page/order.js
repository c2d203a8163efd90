// One order: its state, its timeline, every attempt with its cost, and the possible actions.

import { ask } from './ask.js';
import { one } from './actions.js';
import { errorBox, unloaded } from './dialog.js';
import { button, el, facts, fill, place, say, scrolled, speak, table } from './dom.js';
import { ago, at, atLeast, count, millis, money, notKnown, priced, span, words } from './figures.js';
import { CAUSES, ofOrder, orderLink } from './status.js';

const NOTE_BYTES_MAX = 1000;
const EVERY = 3;
/** How the timeline marks an event. All other events have no mark. */
const EVENT_STYLES = {
  solved: 'good', claimed: 'good', webhook_delivered: 'good', served_from_stock: 'good', stocked: 'good',
  handed_over: 'good',
  faulted: 'bad', failed: 'bad', webhook_failed: 'bad', moved_to_dead_letters: 'grave',
  in_doubt: 'slow', left_in_doubt: 'slow', gave_up: 'slow', held: 'slow', too_old: 'slow', noted: 'note',
};

/** Restores a note: the daemon spells out line breaks and quotes, so that a log has one line for it. */
const SPELT = { n: '\n', r: '', t: ' ', '\\': '\\', "'": "'", '"': '"' };
const asWritten = (what) => what.replace(/\\([nrt\\'"])/g, (_, c) => SPELT[c]);

function timeline(shownOrder) {
  const first = shownOrder.timeline[0]?.at_ms;
  const items = shownOrder.timeline.map((entry, n) => el('li', { class: EVENT_STYLES[entry.name] ?? 'plain' },
    el('div', { class: 'when' }, at(entry.at_ms), el('span', { class: 'soft' }, n ? `+${span(entry.at_ms - first)}` : 'begins')),
    el('div', { class: 'what' }, entry.name === 'noted' ? el('p', { class: 'lines' }, asWritten(entry.what)) : el('p', {}, entry.what),
      entry.fault && !entry.what.includes(entry.fault.code) ? el('p', { class: 'fault' }, el('code', {}, entry.fault.code), ` ${words(entry.fault.class)}`) : null,
      entry.fault?.reply ? el('details', {}, el('summary', {}, 'The provider’s reply'), el('pre', {}, entry.fault.reply)) : null)));
  if (shownOrder.left_out) items.splice(shownOrder.left_out_after, 0, el('li', { class: 'plain gap' }, el('div', { class: 'when' }), el('div', { class: 'what soft' }, `${count(shownOrder.left_out)} entries were left out here`)));
  return el('ol', { class: 'timeline' }, items);
}

/** Whether the provider took an attempt. A rejected attempt was certainly not taken; for one that was only sent, it is not known. */
const taken = (attempt) => attempt.accepted ? 'yes' : attempt.progress === 'faulted' ? 'no' : 'not known';

/** Whether an attempt may have been paid for without a reply that confirms it. */
const isInDoubt = (attempt) => !attempt.made_for && !attempt.cost_micros && taken(attempt) === 'not known';
/** The cost of an attempt. A rejected attempt cost nothing, and an open one has no cost yet. Otherwise a missing cost is unknown. */
function costOf(attempt, currency) {
  if (isInDoubt(attempt)) return notKnown();
  const isOpen = attempt.cost_micros === null && !attempt.unpriced;
  if (isOpen && attempt.accepted) return '–';
  return priced(isOpen ? 0 : attempt.cost_micros, 0, { isShort: true, write: (micros) => money(micros, currency) });
}

function spentOf(shownOrder) {
  const write = (micros) => money(micros, shownOrder.currency);
  if (!shownOrder.attempts.some(isInDoubt)) return priced(shownOrder.spent_micros, shownOrder.unpriced, { write });
  return shownOrder.spent_micros ? atLeast(write(shownOrder.spent_micros)) : notKnown();
}

/** Longer addresses and values are cut until the user opens them. */
const LONG_CHARS = 120;
function shortened(text) {
  const chars = [...String(text)];
  if (chars.length <= LONG_CHARS) return text;
  return el('details', {}, el('summary', {}, `${chars.slice(0, LONG_CHARS).join('')}… (${count(chars.length)} characters)`), text);
}

function attempts(list, currency) {
  if (!list.length) return el('p', { class: 'soft' }, 'Nothing was submitted.');
  const heads = [{ name: 'No.', isRowHead: true }, { name: 'Sent' }, { name: 'Taken' }, { name: 'Result' }, { name: 'Task' }, { name: 'Cost', number: true }, { name: 'For' }];
  return scrolled('Attempts', table('Attempts', heads, list.map((attempt) => [
    String(attempt.number), at(attempt.sent_ms), taken(attempt), attempt.reported ? `${words(attempt.progress)}, reported ${attempt.reported}` : words(attempt.progress), attempt.task ?? '–', costOf(attempt, currency),
    attempt.made_for ? orderLink(attempt.made_for) : 'this order',
  ])));
}

function params(all) {
  const names = Object.keys(all ?? {});
  if (!names.length) return el('p', { class: 'soft' }, 'The order has no parameters.');
  return scrolled('Parameters', table('Parameters', [{ name: 'Name', isRowHead: true }, { name: 'Value' }], names.map((name) => [el('code', {}, name), el('div', { class: 'raw' }, shortened(all[name]))])));
}

function noteForm(shownOrder, again) {
  const room = el('p', { id: 'note-room', class: 'hint' });
  const text = el('textarea', { id: 'note', name: 'text', rows: '2', required: true, 'aria-describedby': 'note-room', on: { input: () => measure() } });
  const wrong = el('div', {});
  function measure() {
    const left = NOTE_BYTES_MAX - new TextEncoder().encode(text.value.trim()).length;
    const words = left < 0 ? `Too long by ${count(-left)} bytes.` : `${count(left)} bytes left.`;
    say(room, `${words} Letters beyond English take two or more.`);
    text.setCustomValidity(left < 0 ? words : '');
  }
  measure();
  return el('form', { class: 'note-form', on: { submit: async (event) => {
    event.preventDefault();
    fill(wrong);
    try {
      await ask(`/v1/admin/orders/${encodeURIComponent(shownOrder.key)}/note`, { method: 'POST', body: { text: text.value } });
      text.value = '';
      measure();
      speak('The note is in the timeline.');
      again();
    } catch (error) {
      fill(wrong, errorBox(error));
    }
  } } }, el('label', { for: 'note' }, 'Note for the next reader'), text, room, wrong, el('button', { type: 'submit' }, 'Add the note'));
}

function deadLetterOf(shownOrder, again) {
  const { dead_letter: letter, on_replay: replay } = shownOrder;
  if (!letter) return null;
  const subject = { ...shownOrder, cause: letter.cause, on_replay: replay?.name, price_micros: replay?.price_micros };
  const act = (action, verb, given) => button(verb, () => one(action, subject, { words: replay?.words }).then((done) => done && again()), given);
  return el('section', { class: 'dead-letter', 'aria-labelledby': 'of-dead-letter' },
    el('h2', { id: 'of-dead-letter' }, `Waits for a person: ${CAUSES[letter.cause] ?? words(letter.cause)}`),
    el('p', {}, letter.why),
    el('p', {}, 'Since ', at(letter.since_ms), ', ', ago(letter.since_ms), '.'),
    replay ? el('p', {}, el('strong', {}, 'A replay '), replay.words, '.') : null,
    el('div', { class: 'acts' }, replay && replay.name !== 'not_allowed' ? act('replay', 'Replay…', { class: 'primary' }) : null, act('drop', 'Drop…', { class: 'quiet' })));
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    speak('The key was copied.');
  } catch {
    speak('The browser does not allow it. Mark the key and copy it.');
  }
}

export function order({ rest }) {
  const key = rest[0] ?? '';
  const leaving = new AbortController();
  const body = el('div', { 'aria-busy': 'true' }, el('p', { class: 'soft' }, 'Looking…'));
  const spots = Object.fromEntries(['status', 'deadLetter', 'timeline', 'attempts', 'params'].map((name) => [name, el('div')]));
  const places = Object.fromEntries(Object.entries(spots).map(([name, node]) => [name, place(node)]));
  const title = el('h1', {}, 'Order');
  let shownOrder = null;
  let isAsking = false;

  function show() {
    fill(title, shownOrder.kind, ' ', el('span', { class: 'soft', title: shownOrder.site }, shownOrder.site));
    places.status([shownOrder.status, shownOrder.phase, shownOrder.attempts, shownOrder.spent_micros, shownOrder.deadline_at, shownOrder.error, shownOrder.life], () => facts([
      ['Status', ofOrder(shownOrder)],
      ['Id', el('code', {}, shownOrder.id)],
      ['Tenant', shownOrder.tenant],
      ['Provider', shownOrder.provider || '–'],
      ['Placed', at(millis(shownOrder.created_at))],
      ['Deadline', at(millis(shownOrder.deadline_at))],
      ['Attempts', count(shownOrder.attempts.length ?? shownOrder.attempts)],
      shownOrder.life > 1 && ['Life', count(shownOrder.life)],
      shownOrder.possible_doubles > 0 && ['Possible doubles', count(shownOrder.possible_doubles)],
      ['Spent', spentOf(shownOrder)],
      shownOrder.page && ['Page', shortened(shownOrder.page), 'whole'],
      shownOrder.error && ['Why', shownOrder.error.message, 'whole'],
    ]));
    places.deadLetter([shownOrder.dead_letter, shownOrder.on_replay], () => deadLetterOf(shownOrder, load));
    places.timeline([shownOrder.timeline, shownOrder.left_out], () => timeline(shownOrder));
    places.attempts(shownOrder.attempts, (list) => attempts(list, shownOrder.currency));
    places.params(shownOrder.params, params);
  }

  function frame() {
    fill(body, spots.status, spots.deadLetter,
      el('div', { class: 'two' },
        el('section', { 'aria-labelledby': 'of-timeline' }, el('h2', { id: 'of-timeline' }, 'Timeline'), spots.timeline, noteForm(shownOrder, load)),
        el('div', {}, el('section', { 'aria-labelledby': 'of-attempts' }, el('h2', { id: 'of-attempts' }, 'Attempts'), spots.attempts),
          el('section', { 'aria-labelledby': 'of-params' }, el('h2', { id: 'of-params' }, 'Parameters'), spots.params))));
  }

  async function load() {
    if (isAsking) return;
    isAsking = true;
    try {
      const isNew = shownOrder === null;
      shownOrder = await ask(`/v1/admin/orders/${encodeURIComponent(key)}`, { signal: leaving.signal });
      if (isNew) frame();
      show();
    } catch (error) {
      const drop = () => one('drop', { key, cause: 'unreadable' }).then((done) => done && load());
      if (!leaving.signal.aborted && !shownOrder) {
        fill(body, unloaded(error), error.code === 'unreadable' ? el('div', { class: 'acts' }, button('Drop…', drop, { class: 'quiet' })) : null, el('p', {}, el('a', { href: '#/search' }, 'Search')));
      }
    }
    body.setAttribute('aria-busy', 'false');
    isAsking = false;
  }

  const node = el('article', {},
    el('div', { class: 'head' }, title),
    el('p', { class: 'whole-key' }, el('code', {}, key), ' ', button('Copy', () => copy(key), { class: 'small quiet' })),
    body);
  load();
  // An open order is read again with each snapshot, and a dead letter now and then: another operator may act on it.
  let seen = 0;
  const update = () => {
    seen += 1;
    if (shownOrder?.status === 'pending' || (shownOrder?.dead_letter && seen % EVERY === 0)) load();
  };
  return { title: 'Order', node, update, load, close: () => leaving.abort() };
}
