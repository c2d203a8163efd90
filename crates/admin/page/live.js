// The present: one stream of snapshots for all views, and the last hour in a ring buffer. A broken stream is opened again,
// and until then the page shows that its figures are old. A tab in the background closes its stream.

import { ask, events, key, request } from './ask.js';
import { setClock, setCurrency } from './figures.js';
import { together } from './share.js';

/** The last hour, with one sample every five seconds. */
const SAMPLES_MAX = 720;
const STEP_MS = 5000;
/** Snapshots come each second. After this long without one, the connection counts as lost. */
const SILENCE_MS = 6000;
const PAUSE_MS = 500;
const PAUSE_MAX_MS = 8000;

const RATES = ['asked', 'joined', 'cached', 'from_stock', 'paid', 'solved', 'failed'];

let watchers = new Set();
let state = 'closed';
let snapshot = null;
let samples = [];
let ending = null;

export const now = () => snapshot;
export const history = () => samples;
export const lineState = () => state;

/** Calls `act` with each snapshot and each change of the connection. Returns a function that stops this. */
export function watch(act) {
  watchers.add(act);
  return () => watchers.delete(act);
}

function tell() {
  for (const act of [...watchers]) act(snapshot, state);
}

function turn(next) {
  if (state === next) return;
  state = next;
  tell();
}

/** A sample of the daemon has differences over five seconds. The plots show rates. */
function pointOf(sample) {
  const point = { at: sample.at_ms, open: sample.open, dead: sample.dead, p50: sample.p50_ms, p95: sample.p95_ms };
  for (const name of RATES) point[name] = (sample[name] ?? 0) / (STEP_MS / 1000);
  return point;
}

/** Adds a sample. Only samples of equal duration are used: the figures of a snapshot have other durations. */
function remember(sample) {
  if (!sample || sample.at_ms <= (samples.at(-1)?.at ?? 0)) return;
  samples = [...samples, pointOf(sample)].slice(-SAMPLES_MAX);
}

async function recall(signal) {
  try {
    const response = await ask('/v1/admin/history', { signal });
    const newest = samples.at(-1)?.at ?? 0;
    const points = response.samples.map(pointOf);
    // Samples that came live in the meantime are newer.
    const seen = samples.filter((point) => point.at > (points.at(-1)?.at ?? 0));
    samples = [...points, ...seen].slice(-SAMPLES_MAX);
    if (newest !== samples.at(-1)?.at) tell();
  } catch {
    // Without the history, the plots begin now.
  }
}

function show(text) {
  snapshot = JSON.parse(text);
  setClock(snapshot.at_ms);
  setCurrency(snapshot.currency);
  remember(snapshot.sample);
  state = 'live';
  tell();
}

async function listen(leave, heard) {
  const silence = new AbortController();
  const signal = AbortSignal.any([leave, silence.signal]);
  let timer = setTimeout(() => silence.abort(), SILENCE_MS);
  try {
    const response = await request('/v1/admin/live', { accept: 'text/event-stream', signal });
    await events(response, (name, text) => {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
      if (name === 'now' && !signal.aborted) heard(text);
    });
  } finally {
    clearTimeout(timer);
    silence.abort();
  }
}

const pause = (ms, signal) => new Promise((resume) => {
  const done = () => {
    clearTimeout(timer);
    window.removeEventListener('online', done);
    resume();
  };
  const timer = setTimeout(done, ms);
  window.addEventListener('online', done, { once: true });
  signal.addEventListener('abort', done, { once: true });
});

/** Listens until it ends, and passes snapshots, and the loss of the connection, to other tabs. */
async function hold(signal, pass) {
  let wait = PAUSE_MS;
  while (!signal.aborted) {
    try {
      await listen(signal, (text) => {
        wait = PAUSE_MS;
        pass({ picture: text });
        show(text);
      });
    } catch (error) {
      if (error.status === 401) throw error;
    }
    if (signal.aborted) return;
    pass({ isLost: true });
    turn('lost');
    // A random pause, so that not all pages of a fleet call a restarted daemon at once.
    await pause(wait * (0.75 + Math.random() / 2), signal);
    wait = Math.min(wait * 2, PAUSE_MAX_MS);
    recall(signal);
  }
}

/** Handles a snapshot, or a lost connection, from another tab. If that tab is silent, this tab listens itself. */
function heard({ picture, isLost }) {
  if (picture && state === 'lost') recall(ending.signal);
  if (picture) show(picture);
  else if (isLost) turn('lost');
}

const shownAgain = (signal) => new Promise((resume) => {
  const look = () => {
    if (document.hidden && !signal.aborted) return;
    document.removeEventListener('visibilitychange', look);
    resume();
  };
  document.addEventListener('visibilitychange', look);
  signal.addEventListener('abort', look, { once: true });
  look();
});

export async function open() {
  if (ending) return;
  ending = new AbortController();
  const { signal } = ending;
  while (!signal.aborted) {
    await shownAgain(signal);
    if (signal.aborted) return;
    turn('connecting');
    const hiding = new AbortController();
    const hide = () => document.hidden && hiding.abort();
    document.addEventListener('visibilitychange', hide);
    const round = AbortSignal.any([signal, hiding.signal]);
    recall(round);
    try {
      await together(key.read(), round, hold, heard);
    } catch {
      // The key is refused: the caller has got the error, and closes this.
      return;
    } finally {
      document.removeEventListener('visibilitychange', hide);
    }
  }
}

export function close() {
  ending?.abort();
  ending = null;
  snapshot = null;
  samples = [];
  turn('closed');
}
