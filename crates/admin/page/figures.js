// Figures as text: counts, money, durations and moments. Moments are by the daemon's clock, not the browser's, and ages keep
// counting.

import { el, say } from './dom.js';

const LANGUAGE = 'en';
const whole = new Intl.NumberFormat(LANGUAGE, { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat(LANGUAGE, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const short = new Intl.NumberFormat(LANGUAGE, { notation: 'compact', maximumSignificantDigits: 3 });
const exact = new Intl.NumberFormat(LANGUAGE, { minimumFractionDigits: 2, maximumFractionDigits: 6 });
const cents = new Intl.NumberFormat(LANGUAGE, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const percent = new Intl.NumberFormat(LANGUAGE, { style: 'percent', maximumFractionDigits: 1 });
const clock = new Intl.DateTimeFormat(LANGUAGE, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
const minute = new Intl.DateTimeFormat(LANGUAGE, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const full = new Intl.DateTimeFormat(LANGUAGE, { dateStyle: 'medium', timeStyle: 'long', hourCycle: 'h23' });
const dayAndMinute = new Intl.DateTimeFormat(LANGUAGE, { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });

const isNumber = (n) => typeof n === 'number' && Number.isFinite(n);
const NONE = '–';

export const count = (n) => (isNumber(n) ? whole.format(n) : NONE);
export const countShort = (n) => (isNumber(n) ? (Math.abs(n) < 10_000 ? whole.format(n) : short.format(n)) : NONE);
export const rate = (n) => (isNumber(n) ? (n > 0 && n < 10 ? tenth.format(n) : countShort(n)) : NONE);
export const share = (n) => (isNumber(n) ? percent.format(n) : NONE);

/** The currency of the account, as the daemon reports it. */
let currency = '';
export const setCurrency = (name) => { currency = name ?? ''; };
const named = (amount, of = currency) => (of ? `${amount}\u00a0${of}` : amount);

/** An amount with all its digits. An amount in another currency keeps that currency. */
export const money = (micros, of) => (isNumber(micros) ? named(exact.format(micros / 1e6), of) : NONE);
/** Whether the cost of an order is in another currency than the account has now. */
export const isForeign = (order) => Boolean(order.currency && currency && order.currency !== currency);
/** An amount with few digits. */
export function moneyShort(micros) {
  if (!isNumber(micros)) return NONE;
  if (Math.abs(micros) >= 100_000e6) return named(short.format(micros / 1e6));
  return named(Math.abs(micros) >= 1e6 || micros === 0 ? cents.format(micros / 1e6) : exact.format(Number((micros / 1e6).toPrecision(3))));
}

export const PRICE_NOT_KNOWN = 'price not known';
const WHY_NOT_KNOWN = 'Callbacks contain no price, and some providers never report one: set [prices].';

/** A sum with `unpriced` missing prices; `null` if nothing is known of it. Short if there is little room. */
export function priced(micros, unpriced = 0, { write = money, isShort = false } = {}) {
  if (isNumber(micros)) return unpriced > 0 ? atLeast(write(micros), { isShort }) : write(micros);
  return el('span', { class: 'unpriced', title: WHY_NOT_KNOWN }, NONE, el('span', { class: isShort ? 'unseen' : 'words' }, ` ${PRICE_NOT_KNOWN}`));
}

/** The mark of a cost that is not known. */
export const notKnown = () => el('span', { class: 'unpriced', title: 'It is not known whether the provider has taken it.' }, 'not known');

/** A sum that is incomplete. */
export function atLeast(sum, { isShort = false } = {}) {
  return el('span', { class: 'unpriced', title: WHY_NOT_KNOWN }, el('span', { class: isShort ? 'unseen' : 'words' }, 'at least '), isShort ? el('span', { 'aria-hidden': 'true' }, '≥ ') : null, sum);
}

export function span(ms) {
  if (!isNumber(ms)) return NONE;
  const sign = ms < 0 ? '−' : '';
  const size = Math.abs(ms);
  const pair = (large, name, small, less) => `${sign}${large} ${name}${small ? ` ${small} ${less}` : ''}`;
  if (size < 1000) return `${sign}${Math.round(size)} ms`;
  if (size < 10_000) return `${sign}${tenth.format(size / 1000)} s`;
  const s = Math.floor(size / 1000);
  if (s < 60) return `${sign}${s} s`;
  if (s < 3600) return pair(Math.floor(s / 60), 'min', s % 60, 's');
  if (s < 86_400) return pair(Math.floor(s / 3600), 'h', Math.floor((s % 3600) / 60), 'min');
  return pair(Math.floor(s / 86_400), 'd', Math.floor((s % 86_400) / 3600), 'h');
}

// How far the daemon's clock is ahead of the browser's.
let ahead = 0;
export function setClock(daemonMs) {
  ahead = daemonMs - Date.now();
}
export const now = () => Date.now() + ahead;

/** The time zone of displayed times: the browser's, as in GMT+2. */
export const zone = () => new Intl.DateTimeFormat(LANGUAGE, { timeZoneName: 'short' }).formatToParts(now()).find((part) => part.type === 'timeZoneName')?.value ?? 'local';
export const timeOfDay = (ms) => clock.format(ms);
export const hourAndMinute = (ms) => minute.format(ms);
export const moment = (ms) => full.format(ms);
const isToday = (ms) => new Date(ms).toDateString() === new Date(now()).toDateString();

/** A moment: only the time if it is today, otherwise with the day; in full on hover. */
export function at(ms) {
  if (!isNumber(ms)) return NONE;
  return el('time', { datetime: new Date(ms).toISOString(), title: moment(ms) }, isToday(ms) ? clock.format(ms) : dayAndMinute.format(ms));
}

const since = (ms) => {
  const passed = now() - ms;
  if (passed < 0) return `in ${span(-passed)}`;
  return passed < 1000 ? 'just now' : `${span(passed < 10_000 ? Math.floor(passed / 1000) * 1000 : passed).replace('.0', '')} ago`;
};

/** How long ago a moment was, or how far ahead it is. The text keeps counting. */
export function ago(ms) {
  if (!isNumber(ms)) return NONE;
  return el('time', { datetime: new Date(ms).toISOString(), title: moment(ms), 'data-since': String(ms) }, since(ms));
}

setInterval(() => {
  for (const node of document.querySelectorAll('time[data-since]')) say(node, since(Number(node.dataset.since)));
}, 1000);

/** An internal name as words: `from_stock` is "from stock". */
export const words = (name) => String(name).replaceAll('_', ' ');
export const millis = (text) => Date.parse(text);
