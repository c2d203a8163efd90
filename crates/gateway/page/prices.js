// How much of what was spent is known. A callback tells no price, and neither do some providers; where the settings do not say it
// either, a sum of money is only the least that it can be, and must not pass for the whole.

import { ask } from './ask.js';

/** What the settings in force say of it: whether callbacks are in use, and of which kinds the price is set. */
async function settings(signal) {
  const { settings: all } = await ask('/v1/admin/settings', { signal });
  const kinds = all.map((one) => /(?:^|\.)prices\.([^.]+)$/.exec(one.name)?.[1]).filter(Boolean);
  return { hasCallbacks: all.some((one) => one.name === 'public_url'), kinds: new Set(kinds) };
}

const answers = (row) => row.solved + row.late;

/** Of the answers in a line of the books, about how many have no price: those that a callback brought, if their kind has none set. */
function unpricedIn(row, { hasCallbacks, kinds }) {
  if (row.kind && kinds.has(row.kind)) return 0;
  if (!row.cost_micros) return answers(row);
  return hasCallbacks ? Math.max(0, answers(row) - row.recovered_by_poll) : 0;
}

/**
 * What is not known in a report by kinds: about how many answers have no price, and whether that may be so of a line of another
 * report about the same days.
 */
export async function unpriced(byKind, signal) {
  const known = await settings(signal);
  const number = byKind.rows.reduce((sum, row) => sum + unpricedIn(row, known), 0);
  return { number, isPart: (row) => (row.kind === undefined ? number > 0 : unpricedIn(row, known) > 0) };
}

export const ALL_PRICED = { number: 0, isPart: () => false };
