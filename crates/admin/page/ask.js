// Requests to the daemon: `/v1` with the operator's key, which is kept only in this tab.

const KEY = 'quittance.key';
const REPLY_MS = 30_000;

/** A refused request, with the daemon's own reason. */
export class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `The daemon answered ${status}.`);
    this.status = status;
    this.code = problem.code ?? '';
    // The hint of this code is for programmers: the detail says what was wrong.
    this.hint = problem.code === 'bad_params' ? '' : problem.hint ?? '';
  }
}

/** The error of a request without a response. */
export class Away extends Error {
  constructor() {
    super('The daemon cannot be reached.');
    this.code = 'away';
    this.hint = 'Is it running?';
  }
}

export const key = {
  read: () => sessionStorage.getItem(KEY) ?? '',
  keep: (text) => sessionStorage.setItem(KEY, text),
  forget: () => sessionStorage.removeItem(KEY),
};

let refused = () => {};
/** Sets what happens when the key is not the operator's, or is not any more. */
export function onRefused(act) {
  refused = act;
}

const address = (path) => new URL(`..${path}`, document.baseURI);

async function problemOf(response) {
  try {
    return await response.json();
  } catch {
    return {};
  }
}

/** Sends one request. `signal` ends it. A refused or unanswered request throws an error. */
export async function request(path, { method = 'GET', body, signal, accept = 'application/json' } = {}) {
  const headers = { accept };
  const shown = key.read();
  if (shown) headers.authorization = `Bearer ${shown}`;
  if (body !== undefined) headers['content-type'] = 'application/json';
  const text = body === undefined ? undefined : JSON.stringify(body);
  let response;
  try {
    response = await fetch(address(path), { method, headers, body: text, signal, cache: 'no-store', credentials: 'omit', redirect: 'error' });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Away();
  }
  if (response.ok) return response;
  const why = new Refused(response.status, await problemOf(response));
  if (why.status === 401 || (why.status === 403 && why.code === 'forbidden')) refused(why);
  throw why;
}

export async function ask(path, options = {}) {
  const timeout = AbortSignal.timeout(REPLY_MS);
  const signal = options.signal ? AbortSignal.any([options.signal, timeout]) : timeout;
  try {
    const response = await request(path, { ...options, signal });
    return response.status === 204 ? null : await response.json();
  } catch (error) {
    if (timeout.aborted && !options.signal?.aborted) throw new Away();
    throw error;
  }
}

/** The path with those query parameters that are not empty. */
export function withQuery(path, query) {
  const params = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== '' && value !== null && value !== undefined));
  return params.size ? `${path}?${params}` : path;
}

const EVENT_CHARS_MAX = 4 * 1024 * 1024;

/** Reads a stream of events (text/event-stream) until it ends, and calls `heard(name, text)` for each event. */
export async function events(response, heard) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    if (rest.length > EVENT_CHARS_MAX) throw new Error('an event without an end');
    const parts = rest.split(/\r?\n\r?\n/);
    rest = parts.pop();
    for (const part of parts) {
      let name = 'message';
      const lines = [];
      for (const line of part.split(/\r?\n/)) {
        if (line.startsWith('event:')) name = line.slice(6).trim();
        else if (line.startsWith('data:')) lines.push(line.slice(5).replace(/^ /, ''));
      }
      heard(name, lines.join('\n'));
    }
  }
}
