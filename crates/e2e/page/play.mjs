// Plays one play in a real Chromium: `play.mjs NAME BASE KEY`. A play and the test that started it take turns: the play says in a
// line on standard output how far it has come, and goes on when it is sent a line. It calls only BASE.

import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import readline from 'node:readline';
import * as plays from './plays.mjs';
import { tabs } from './tabs.mjs';

const [name, base, key] = process.argv.slice(2);
const place = process.env.QUITTANCE_BROWSER;
const load = createRequire(path.join(place, 'package.json'));
const { chromium } = load('playwright-core');
const axe = fs.readFileSync(load.resolve('axe-core/axe.min.js'), 'utf8');

/** Longer than anything may take on a machine that is busy with something else. */
const LONG_MS = 60_000;
/** As much of the page as is worth reading when a play fails. */
const SEEN_MAX = 1500;

const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

/** Says how far it has come, and waits until it may go on. */
async function step(words) {
  say({ at: words });
  const { done } = await lines.next();
  if (done) throw new Error(`it was not resumed at: ${words}`);
}

const browser = await chromium.launch({
  executablePath: fs.readFileSync(path.join(place, 'chromium'), 'utf8').trim(),
  args: [
    '--no-sandbox', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run',
    '--disable-default-apps', '--disable-dev-shm-usage', '--disable-gpu', '--no-pings',
    // Whatever the browser itself might want to look up has no address.
    '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost',
  ],
});

const wrong = [];

/** A new browser as far as the daemon can tell: nothing is remembered from another. */
async function open({ width = 1280, height = 860, theme = 'light' } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, reducedMotion: 'reduce', acceptDownloads: true });
  context.setDefaultTimeout(LONG_MS);
  const page = await context.newPage();
  page.on('pageerror', (error) => wrong.push(`an error in the page: ${error.message}`));
  // What a refused key or a daemon that is away leaves in the console is the browser's own, and expected.
  page.on('console', (line) => line.type() === 'error' && !line.text().startsWith('Failed to load resource') && wrong.push(`in the console: ${line.text()}`));
  page.on('dialog', (dialog) => {
    wrong.push(`a dialog of the browser: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on('request', (request) => new URL(request.url()).origin !== new URL(base).origin && !request.url().startsWith('blob:') && wrong.push(`a call to ${request.url()}`));
  return page;
}

/** Logs in with the key, and waits for the overview with live figures. */
async function enter(page) {
  await page.goto(`${base}/page/`);
  await page.getByLabel('The operator’s key').fill(key);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.locator('#link-state', { hasText: 'Live' }).waitFor();
}

/** To a view, and until it has what it shows. */
async function visit(page, hash) {
  await page.evaluate((to) => { location.hash = to; }, hash);
  await page.waitForFunction(() => !document.querySelector('[aria-busy=true]') && !/Looking…|Adding up…|Waiting for the first/.test(document.body.innerText));
}

/** What the checker calls serious or critical. */
async function flaws(page) {
  await page.evaluate(`${axe};0`);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  return violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes.map((node) => node.html.slice(0, 160)).join(' | ')}`);
}

let page;
try {
  const tools = { base, key, step, enter, visit, flaws, open: async (look) => (page = await open(look)) };
  await { ...plays, tabs }[name](tools);
  if (wrong.length) throw new Error(wrong.join('; '));
  say({ done: true });
} catch (error) {
  const seen = await page?.evaluate(() => document.body.innerText).catch(() => '');
  process.stderr.write(`${error.stack}\nOn the page:\n${seen?.slice(0, SEEN_MAX)}\n${wrong.join('\n')}\n`);
  process.exitCode = 1;
} finally {
  await browser.close();
  lines.return?.();
  process.stdin.destroy();
}
