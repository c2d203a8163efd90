// Many tabs of one browser, and one line to the daemon.

import assert from 'node:assert/strict';

/** A tab is seen or is not, as the page sees it: here all tabs are seen. */
const isSeen = (page, seen) => page.evaluate((hidden) => {
  Object.defineProperty(document, 'hidden', { configurable: true, value: hidden });
  document.dispatchEvent(new Event('visibilitychange'));
}, !seen);

/** More tabs than a browser has connections: all are live by one line, another takes it up when its holder goes, and a hidden one lets go. */
export async function tabs({ base, open, enter }) {
  const lines = new Set();
  const watched = (page) => {
    const isLine = (request) => new URL(request.url()).pathname === '/v1/admin/live';
    page.on('request', (request) => isLine(request) && lines.add(page));
    const over = (request) => isLine(request) && lines.delete(page);
    page.on('requestfinished', over);
    page.on('requestfailed', over);
    page.on('close', () => lines.delete(page));
    return page;
  };
  /** So many lines, and none of them this tab's. */
  const count = async (number, gone = null) => {
    const isSo = () => lines.size === number && !lines.has(gone);
    for (let tries = 0; !isSo() && tries < 200; tries += 1) await new Promise((resume) => setTimeout(resume, 50));
    assert.ok(isSo(), `${lines.size} lines and not ${number}, or a tab that is hidden has one`);
  };
  const first = watched(await open());
  await enter(first);
  await count(1);
  const others = [];
  for (let n = 0; n < 7; n += 1) {
    const page = watched(await first.context().newPage());
    await enter(page);
    others.push(page);
  }
  await count(1);
  for (const page of others) {
    await page.evaluate(() => { location.hash = '#/usage'; });
    await page.getByRole('heading', { name: 'Usage' }).waitFor();
    await page.getByRole('definition').first().waitFor();
  }
  // A visitor without a login gets nothing, and must enter the key.
  const stranger = watched(await first.context().newPage());
  await stranger.goto(`${base}/page/`);
  await stranger.getByRole('heading', { name: 'Log in' }).waitFor();
  assert.equal(await stranger.locator('#link-state').innerText(), '');
  await first.close();
  await count(1, first);
  for (const page of others) await page.locator('#link-state[data-state=live]').waitFor();
  const [holder] = lines;
  await isSeen(holder, false);
  await count(1, holder);
  for (const page of others.filter((page) => page !== holder)) await isSeen(page, false);
  await count(0);
  await isSeen(holder, true);
  await count(1);
  await holder.locator('#link-state[data-state=live]').waitFor();
  await holder.getByRole('button', { name: 'Log out' }).click();
  await count(0);
}
