// What an operator can do with dead letters: replay or drop one, several, or all that match. Each action is confirmed first,
// with its possible cost.

import { ask } from './ask.js';
import { confirmed } from './dialog.js';
import { el, facts, speak } from './dom.js';
import { atLeast, count, isForeign, millis, moment, money, notKnown, priced, words } from './figures.js';
import { CAUSES, REPLAYS } from './status.js';

const VERBS = { replay: 'Replay', drop: 'Drop' };
const DONE = { replay: 'replayed', drop: 'dropped' };
const DROPPING = 'Callers that wait for the order get an error. Money that was paid is not refunded. This cannot be undone.';
const DISCARDING = 'An unreadable record is removed, and its key is free: if a caller places the order again, it is bought, although it may have been paid for before.';

/** The possible cost of replaying these dead letters, as the daemon sent with each. */
function priceOf(letters) {
  const paying = letters.map((letter) => letter.price_micros).filter((micros) => micros !== undefined);
  const unpriced = paying.filter((micros) => micros === null).length;
  return { paying: paying.length, unpriced, micros: paying.reduce((sum, one) => sum + (one ?? 0), 0) };
}

/** Whether it is not known what these dead letters have cost: one of their attempts may have been paid for. */
const isInDoubt = (letter) => letter.cause === 'in_doubt' || letter.cause === 'unreadable' || letter.possible_doubles > 0;

/** Whether the site of the dead letter may not be automated any more. */
const isNotAllowed = (letter) => letter.on_replay === 'not_allowed';

/** What a dead letter has cost. If it died after its answer came, it was paid for, even at an unknown price. */
export function spentOn(letter, given) {
  const { spent_micros: micros } = letter;
  const write = (sum) => money(sum, letter.currency);
  if (isInDoubt(letter)) return micros ? atLeast(write(micros), given) : notKnown();
  return priced(micros, letter.unpriced, { write, ...given });
}

/** What these dead letters have cost, and how many prices are missing. An amount in another currency counts as missing. */
function spentInAll(letters) {
  const own = letters.filter((letter) => !isForeign(letter));
  const unpriced = own.reduce((sum, letter) => sum + (letter.unpriced ?? 0), letters.length - own.length);
  return [own.reduce((sum, letter) => sum + (letter.spent_micros ?? 0), 0), unpriced];
}

function spentOnAll(micros, unpriced, isInDoubt) {
  if (isInDoubt) return micros ? atLeast(money(micros)) : notKnown();
  return priced(!micros && unpriced > 0 ? null : micros, unpriced);
}

const FILTER_WORDS = {
  cause: (name) => `cause ${(CAUSES[name] ?? words(name)).toLowerCase()}`, kind: (name) => `kind ${name}`, site: (name) => `site ${name}`, tenant: (name) => `tenant ${name}`,
  since: (at) => `dead since ${moment(millis(at))}`, before: (at) => `dead before ${moment(millis(at))}`,
};
export const FILTERS = Object.keys(FILTER_WORDS);

/** The filter of dead letters, in words. */
export function filterWords(filter) {
  return FILTERS.filter((name) => filter[name]).map((name) => FILTER_WORDS[name](filter[name])).join(', ') || 'all dead letters';
}

function costWords({ paying, micros, unpriced = 0 }) {
  if (!paying) return 'nothing';
  if (unpriced && micros) return `up to about ${money(micros)}, and what the others cost`;
  return unpriced ? 'the price of an answer each, which is not known' : `up to about ${money(micros)}`;
}

/** Replays or drops one dead letter. Returns whether it was done. */
export async function one(action, letter, { words: sentence } = {}) {
  const isReplay = action === 'replay';
  const done = await confirmed({
    title: isReplay ? 'Replay this order?' : 'Drop this dead letter?',
    content: [
      facts([
        ['Order', el('code', {}, letter.key.slice(0, 16))],
        letter.kind && ['Kind', letter.kind],
        letter.site && ['Site', letter.site],
        ['Spent so far', spentOn(letter)],
        isReplay && ['What a replay does', sentence ?? REPLAYS[letter.on_replay] ?? 'not known'],
        isReplay && ['What it costs', costWords(priceOf([letter]))],
      ]),
      isReplay ? null : el('p', {}, letter.cause === 'unreadable' ? DISCARDING : DROPPING),
    ],
    verb: VERBS[action],
    isGrave: !isReplay,
    action: async () => (await ask(`/v1/admin/dead/${encodeURIComponent(letter.key)}/${action}`, { method: 'POST' })) ?? true,
  });
  if (done) speak(`The order was ${DONE[action]}.`);
  return Boolean(done);
}

/** Replays or drops several picked dead letters. If one fails, the others continue. */
export async function several(action, letters) {
  const isReplay = action === 'replay';
  const result = await confirmed({
    title: `${VERBS[action]} ${count(letters.length)} dead letters?`,
    content: [
      facts([
        ['Dead letters', count(letters.length)],
        ['Spent so far', spentOnAll(...spentInAll(letters), letters.some(isInDoubt))],
        isReplay && ['Would pay', count(priceOf(letters).paying)],
        isReplay && ['What it costs', costWords(priceOf(letters))],
        isReplay && letters.some(isNotAllowed) && ['Refused, not allowed any more', count(letters.filter(isNotAllowed).length)],
      ]),
      isReplay ? null : el('p', {}, DROPPING),
    ],
    verb: VERBS[action],
    isGrave: !isReplay,
    action: async () => {
      const outcome = { done: 0, refused: [] };
      for (const letter of letters) {
        try {
          await ask(`/v1/admin/dead/${encodeURIComponent(letter.key)}/${action}`, { method: 'POST' });
          outcome.done += 1;
        } catch (error) {
          if (!error.status || error.status === 401) throw error;
          outcome.refused.push({ key: letter.key, why: error.message });
        }
      }
      return outcome;
    },
  });
  if (result) speak(`${result.done} were ${DONE[action]}, ${result.refused.length} were not.`);
  return result;
}

/** The estimated result. Each response covers a limited number of dead letters, so the results are added up. */
async function dryRun(action, filter, signal) {
  const sum = { dead_letters: 0, would_pay: 0, unpriced: 0, may_pay_twice: 0, not_allowed: 0, cost_micros: 0, spent_micros: 0, spent_unpriced: 0, unreadable: 0, by_cause: {} };
  let after;
  do {
    const result = await ask('/v1/admin/dead/bulk', { method: 'POST', body: { action, ...filter, dry_run: true, after }, signal });
    for (const name of Object.keys(sum).filter((one) => one !== 'by_cause')) sum[name] += result[name] ?? 0;
    for (const [cause, number] of Object.entries(result.by_cause)) sum.by_cause[cause] = (sum.by_cause[cause] ?? 0) + number;
    after = result.next;
  } while (after);
  return sum;
}

/** Replays or drops all that match. The daemon counts them first, and continues the work even if this page is closed. */
export async function all(action, filter) {
  const isReplay = action === 'replay';
  const closing = new AbortController();
  let letters;
  const counted = dryRun(action, filter, closing.signal).then((result) => ((letters = result.dead_letters), {
    isPossible: result.dead_letters > (isReplay ? result.not_allowed : 0),
    node: [
      el('p', {}, 'Filter: ', el('strong', {}, filterWords(filter)), '.'),
      facts([
        ['Dead letters', count(result.dead_letters)],
        ['Spent so far', spentOnAll(result.spent_micros, result.spent_unpriced, (result.by_cause.in_doubt ?? 0) + (result.by_cause.unreadable ?? 0) > 0)],
        ...Object.entries(result.by_cause).map(([cause, number]) => [CAUSES[cause] ?? words(cause), count(number)]),
        isReplay && ['Would pay', count(result.would_pay)],
        isReplay && ['What it costs', costWords({ paying: result.would_pay, micros: result.cost_micros, unpriced: result.unpriced })],
        isReplay && result.not_allowed > 0 && ['Skipped: no longer allowed', count(result.not_allowed)],
        isReplay && result.unreadable > 0 && ['Skipped: unreadable', count(result.unreadable)],
      ]),
      isReplay && result.unpriced > 0 ? el('p', {}, `The price of ${count(result.unpriced)} of them is not known.`) : null,
      isReplay && result.may_pay_twice > 0 ? el('p', {}, el('strong', {}, `${count(result.may_pay_twice)} may be paid for a second time.`)) : null,
      el('p', {}, isReplay ? 'They are replayed at an even pace, and each once. You can stop it at any time.' : DROPPING),
      !isReplay && result.unreadable > 0 ? el('p', {}, DISCARDING) : null,
    ],
  }));
  const bulk = await confirmed({
    title: isReplay ? 'Replay all that match?' : 'Drop all that match?',
    content: counted,
    verb: VERBS[action],
    isGrave: !isReplay,
    action: () => ask('/v1/admin/dead/bulk', { method: 'POST', body: { action, ...filter } }),
  });
  closing.abort();
  if (bulk) speak(`${action === 'replay' ? 'Replay' : 'Drop'} started.`);
  return bulk && { ...bulk, of: letters };
}

/** Resumes all providers, once their accounts are fixed. */
export async function resumeAll() {
  const done = await confirmed({
    title: 'Resume held orders?',
    content: el('p', {}, 'Do this when the provider’s account is fixed. Every order that was held for it is submitted again, and paid for.'),
    verb: 'Resume',
    action: () => ask('/v1/admin/resume', { method: 'POST' }),
  });
  if (done) speak('Resumed.');
}

const PROVIDER_ACTIONS = {
  pause: { title: 'Pause', done: 'paused', words: 'It gets no orders until it is resumed, on all nodes. Its open tasks are still polled, and their answers are used. Orders go to another provider, or wait.' },
  drain: { title: 'Drain', done: 'drained', words: 'It finishes the tasks that it has, and gets no more until it is resumed, on all nodes. Orders go to another provider, or wait.' },
  resume: { title: 'Resume', done: 'resumed', words: 'It gets orders again, on all nodes. Every order that was held for its account is submitted again, and paid for.' },
};

/** Pauses, drains or resumes a provider. Returns whether it was done. */
export async function providerAction(action, { name }) {
  const { title, done: state, words: sentence } = PROVIDER_ACTIONS[action];
  const done = await confirmed({
    title: `${title} ${name}?`,
    content: el('p', {}, sentence),
    verb: title,
    isGrave: action === 'pause',
    action: () => ask(`/v1/admin/providers/${encodeURIComponent(name)}/${action}`, { method: 'POST' }),
  });
  if (done) speak(`${name} is ${state}.`);
  return Boolean(done);
}
