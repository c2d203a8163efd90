// Bulk actions in progress: their progress and, after the end, the outcomes of replayed orders. The daemon runs them, so
// every view shows them at the top, also those of other operators.

import { ask, withQuery } from './ask.js';
import { filterWords } from './actions.js';
import { button, el, place, speak } from './dom.js';
import { count } from './figures.js';
import { sign } from './status.js';

/** How often the outcomes are read. If that takes long, because there are many records, it is done less often. */
const LOOK_MS = 3000;
const THROTTLE = 10;

export const node = el('div', { class: 'bulks' });
const shown = place(node);
/** Bulk actions by number: {bulk, of, outcome, isHidden}. `of`, the total, is known only for actions begun on this page. */
let known = new Map();
const listeners = new Set();

/** Calls `act` when a bulk action has ended, and when all its replayed orders have. Returns a function that stops this. */
export function onEnd(act) {
  listeners.add(act);
  return () => listeners.delete(act);
}

export function begun(bulk) {
  known.set(Number(bulk.number), { bulk, of: bulk.of });
  show();
}

export function forget() {
  known = new Map();
  show();
}

async function outcomeOf(number) {
  const sum = { open: 0, held: 0, answered: 0, failed: 0, dead: 0 };
  let after;
  do {
    const page = await ask(withQuery(`/v1/admin/dead/bulk/${encodeURIComponent(number)}/outcome`, { status: 'all', after }));
    for (const name of Object.keys(sum)) sum[name] += page[name];
    after = page.next;
  } while (after);
  return sum;
}

const isOver = ({ bulk, outcome }) => Boolean(bulk.ended_at) && (bulk.action === 'drop' || outcome?.open === 0);

async function lookAt(entry) {
  if (entry.isAsked) return;
  entry.isAsked = true;
  const began = Date.now();
  const { number } = entry.bulk;
  const was = Boolean(entry.bulk.ended_at);
  try {
    if (!was) entry.bulk = await ask(`/v1/admin/dead/bulk/${encodeURIComponent(number)}`);
    const { bulk } = entry;
    if (bulk.ended_at && bulk.action === 'replay') entry.outcome = await outcomeOf(number);
    if (bulk.ended_at && !was) speak(`Number ${number} has ended: ${count(bulk.done)} done, ${count(bulk.skipped)} skipped.`);
    else if (isOver(entry)) speak(`Number ${number}: ${becameWords(entry)}.`);
    if ((bulk.ended_at && !was) || isOver(entry)) for (const act of listeners) act();
  } catch {
    // The next round reads it again.
  }
  entry.isAsked = false;
  entry.nextAt = Date.now() + Math.max(LOOK_MS, THROTTLE * (Date.now() - began));
  show();
}

async function stop(entry) {
  try {
    await ask(`/v1/admin/dead/bulk/${encodeURIComponent(entry.bulk.number)}`, { method: 'DELETE' });
    await lookAt(entry);
  } catch (error) {
    speak(error.message);
  }
}

function becameWords({ bulk, outcome }) {
  const { open, held, answered, failed, dead } = outcome;
  const lost = Math.max(0, bulk.done - open - answered - failed - dead);
  return [`${count(answered)} answered`, `${count(failed)} failed`, `${count(dead)} dead again`, `${count(open)} on their way${held ? ` (${count(held)} held)` : ''}`, lost && `${count(lost)} not known any more`].filter(Boolean).join(', ');
}

/** The state of a bulk action. A replayed order may have no answer yet, so there is a tick only if all were answered. */
function stands({ bulk, outcome }) {
  if (!bulk.ended_at) return sign('going', 'under way');
  if (bulk.action === 'drop') return bulk.was_stopped ? sign('off', 'stopped') : sign('good', 'ended');
  if (!outcome) return sign('going', bulk.was_stopped ? 'stopped' : 'sent on their way');
  if (outcome.open) return sign('going', bulk.was_stopped ? 'stopped, some on their way' : 'on their way');
  if (bulk.done && outcome.answered >= bulk.done) return sign(bulk.was_stopped ? 'off' : 'good', bulk.was_stopped ? 'stopped, all others answered' : 'all answered');
  return sign(bulk.done ? 'slow' : 'off', bulk.was_stopped ? 'stopped' : bulk.done ? 'ended, not all answered' : 'ended');
}

function row(entry) {
  const { bulk, of, outcome } = entry;
  const progress = `${count(bulk.done)}${of ? ` of ${count(of)}` : ''} ${bulk.action === 'drop' ? 'dropped' : 'replayed'}, ${count(bulk.skipped)} skipped`;
  return el('li', {}, stands(entry),
    el('span', {}, `${bulk.action === 'drop' ? 'Dropping' : 'Replaying'} no. ${bulk.number} (${filterWords(bulk)}): ${progress}${outcome ? `; ${becameWords(entry)}` : ''}`),
    bulk.ended_at ? button('Hide', () => { entry.isHidden = true; show(); }, { class: 'small quiet', 'aria-label': `Hide no. ${bulk.number}` }) : button('Stop', () => stop(entry), { class: 'small', 'aria-label': `Stop no. ${bulk.number}` }));
}

function show() {
  const all = [...known.values()].filter((entry) => !entry.isHidden);
  shown(all.map(({ bulk, of, outcome }) => [bulk, of, outcome]), () => (all.length ? el('ul', { 'aria-label': 'Bulk actions' }, all.map(row)) : null));
}

export function update(snapshot) {
  const under = new Set();
  for (const bulk of snapshot.bulks) {
    const number = Number(bulk.number);
    under.add(number);
    const entry = known.get(number);
    if (!entry) known.set(number, { bulk });
    // The snapshot may be older than a response that came in the meantime.
    else if (!entry.bulk.ended_at) entry.bulk = bulk;
  }
  show();
  for (const [number, entry] of known) {
    const isDue = Date.now() >= (entry.nextAt ?? 0);
    if (isDue && !under.has(number) && !isOver(entry)) lookAt(entry);
  }
}
