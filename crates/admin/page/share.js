// One connection to the daemon for all tabs of a browser: a browser allows only six connections to a host, and a stream uses
// one for good. The tab with the lock listens and passes on what it receives. The other tabs wait for the lock, and get
// messages meanwhile. The names of lock and channel contain a digest of the key, so only tabs with an equal key get messages.

/** After this long without a message from the tab with the lock, a tab listens for itself: the other may hang. */
const HOLDER_MS = 15_000;

/** The name of the shared connection for this key; nothing if the browser cannot share one. */
async function nameOf(key) {
  if (!navigator.locks || !globalThis.BroadcastChannel || !globalThis.crypto?.subtle) return null;
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(`quittance.live ${key}`));
  return `quittance.live.${[...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

/**
 * Runs until `signal` ends it. Either `hold(signal, tell)` listens here, and `tell` sends to the other tabs, or `heard` gets
 * the messages of another tab.
 */
export async function together(key, signal, hold, heard) {
  const alone = (until) => hold(until, () => {});
  const name = await nameOf(key).catch(() => null);
  if (!name) return alone(signal);
  const channel = new BroadcastChannel(name);
  let own = null;
  let timeout;
  const leaveIt = () => {
    clearTimeout(timeout);
    own?.abort();
    own = null;
  };
  const rely = () => {
    leaveIt();
    timeout = setTimeout(() => {
      own = new AbortController();
      alone(AbortSignal.any([signal, own.signal])).catch(() => {});
    }, HOLDER_MS);
  };
  channel.onmessage = ({ data }) => {
    if (signal.aborted) return;
    rely();
    heard(data);
  };
  rely();
  let isHolder = false;
  try {
    await navigator.locks.request(name, { signal }, () => {
      isHolder = true;
      leaveIt();
      channel.onmessage = null;
      return hold(signal, (message) => !signal.aborted && channel.postMessage(message));
    });
  } catch (error) {
    if (isHolder) throw error;
    leaveIt();
    // Some browsers give no lock if they may not store anything.
    if (!signal.aborted) await alone(signal);
  } finally {
    leaveIt();
    channel.close();
  }
}
