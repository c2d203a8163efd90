// What happens now: one stream of snapshots for all views, and the last hour of them in a ring. When the stream breaks it is
// opened again, and until then everybody can see that what is shown is old.

import { ask, events, request } from './ask.js';
import { setClock } from './figures.js';

/** The last hour at one sample each five seconds. */
const SAMPLES_MAX = 720;
const STEP_MS = 5000;
/** One snapshot comes each second: after so long without any, the line is dead, whatever the system says of it. */
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

/** Calls back with each snapshot and each change of the line; returns how to stop that. */
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

/** A sample of the daemon's has differences over five seconds; what is plotted are rates. */
function fromHistory(sample) {
  const point = { at: sample.at_ms, open: sample.open, dead: sample.dead, p50: sample.p50_ms, p95: sample.p95_ms };
  for (const name of RATES) point[name] = (sample[name] ?? 0) / (STEP_MS / 1000);
  return point;
}

function fromSnapshot(said) {
  const point = { at: said.at_ms, open: said.orders.open, dead: said.orders.dead, p50: said.latency_ms.p50, p95: said.latency_ms.p95 };
  for (const name of RATES) point[name] = said.rates[name] ?? 0;
  return point;
}

function remember(point) {
  const step = (one) => Math.floor(one.at / STEP_MS);
  const last = samples.at(-1);
  if (last && step(point) < step(last)) return;
  if (last && step(last) === step(point)) samples.pop();
  samples.push(point);
  if (samples.length > SAMPLES_MAX) samples.splice(0, samples.length - SAMPLES_MAX);
}

async function recall(signal) {
  try {
    const said = await ask('/v1/admin/history', { signal });
    const newest = samples.at(-1)?.at ?? 0;
    const points = said.samples.map(fromHistory);
    // What was seen live is kept: it is newer.
    const seen = samples.filter((point) => point.at > (points.at(-1)?.at ?? 0));
    samples = [...points, ...seen].slice(-SAMPLES_MAX);
    if (newest !== samples.at(-1)?.at) tell();
  } catch {
    // Then the plots begin now.
  }
}

async function listen(leave) {
  const silence = new AbortController();
  const signal = AbortSignal.any([leave, silence.signal]);
  let alarm = setTimeout(() => silence.abort(), SILENCE_MS);
  try {
    const response = await request('/v1/admin/live', { accept: 'text/event-stream', signal });
    await events(response, (name, text) => {
      clearTimeout(alarm);
      alarm = setTimeout(() => silence.abort(), SILENCE_MS);
      if (name !== 'now') return;
      snapshot = JSON.parse(text);
      setClock(snapshot.at_ms);
      remember(fromSnapshot(snapshot));
      state = 'live';
      tell();
    });
  } finally {
    clearTimeout(alarm);
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

export async function open() {
  if (ending) return;
  ending = new AbortController();
  const { signal } = ending;
  turn('connecting');
  let wait = PAUSE_MS;
  while (!signal.aborted) {
    recall(signal);
    try {
      await listen(signal);
    } catch (error) {
      if (error.status === 401) return;
    }
    if (signal.aborted) return;
    if (state === 'live') wait = PAUSE_MS;
    turn('lost');
    // Not all pages of a fleet at once, when their daemon is back.
    await pause(wait * (0.75 + Math.random() / 2), signal);
    wait = Math.min(wait * 2, PAUSE_MAX_MS);
  }
}

export function close() {
  ending?.abort();
  ending = null;
  snapshot = null;
  samples = [];
  turn('closed');
}
