// One line to the daemon for all tabs of a browser: a browser has only six connections to a place, and a line that is listened to
// takes one of them for good. The tab with the lock listens and passes on what it receives; the others wait for the lock, and hear of
// it in the meantime. Lock and channel bear the digest of the key, so nothing gets to a tab that is not logged in with the same.

/** After so long without a message from the tab with the lock, a tab listens for itself: the other may be stuck. */
const HOLDER_MS = 15_000;

/** What the tabs with this key call their line, or nothing where a browser cannot share one. */
async function nameOf(key) {
  if (!navigator.locks || !globalThis.BroadcastChannel || !globalThis.crypto?.subtle) return null;
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(`quittance.live ${key}`));
  return `quittance.live.${[...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

/**
 * Until `signal` ends it: either `hold(signal, tell)` listens here, and what it tells goes to the other tabs, or `heard` gets
 * what another tab says.
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
    // A browser that gives no lock, as some do where nothing may be kept.
    if (!signal.aborted) await alone(signal);
  } finally {
    leaveIt();
    channel.close();
  }
}
