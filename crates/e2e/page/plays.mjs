// The plays: what an operator does at the page and must see. Each waits for what it wants to see, and never for luck.

import assert from 'node:assert/strict';
import fs from 'node:fs';

const menu = (page, name) => page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name });
const kept = (page) => page.evaluate(() => JSON.stringify([{ ...localStorage }, document.cookie, location.href]));

/** Refused with a wrong key and with none, let in with the right one, and out again. */
export async function login({ base, key, open, enter }) {
  const page = await open();
  await page.goto(`${base}/`);
  assert.equal(new URL(page.url()).pathname, '/page/', 'a browser is led to the page');
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
  for (const [typed, words] of [['wrong'.repeat(7), 'The daemon refuses this key.'], ['schlüssel', 'This is not a key.']]) {
    await page.getByLabel('The operator’s key').fill(typed);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('alert').filter({ hasText: words }).waitFor();
    assert.equal(await page.evaluate(() => sessionStorage.length), 0, 'a refused key is not kept');
    assert.equal(await page.getByRole('navigation', { name: 'Views' }).isVisible(), false);
  }
  await enter(page);
  assert.ok(!(await kept(page)).includes(key), 'the key is in this tab and nowhere else');
  await page.reload();
  await page.locator('#link-state', { hasText: 'Live' }).waitFor();
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  await page.reload();
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
}

/** What cannot be seen without scrolling sideways, or is cut off: the page itself, a view's name in the navigation, a label of a plot. */
const outside = (page) => page.evaluate(() => {
  const root = document.documentElement;
  const isCut = (node, frame) => node.getBoundingClientRect().left < frame.left - 1 || node.getBoundingClientRect().right > frame.right + 1;
  const views = [...document.querySelectorAll('nav.views a')].filter((link) => isCut(link, { left: 0, right: root.clientWidth }));
  const labels = [...document.querySelectorAll('.plot .tick')].filter((label) => isCut(label, label.ownerSVGElement.getBoundingClientRect()));
  return [
    root.scrollWidth > root.clientWidth && `${root.scrollWidth - root.clientWidth} pixels too wide`,
    ...views.map((link) => `${link.textContent} is outside of the navigation`),
    ...labels.map((label) => `a label is cut: ${label.textContent}`),
  ].filter(Boolean);
});

const dial = (page, name) => page.locator('.dial').filter({ has: page.getByRole('heading', { name, exact: true }) });

/** A storm of orders, seen as it happens; and a line that breaks, and comes back. */
export async function storm({ open, enter, step }) {
  const page = await open();
  await enter(page);
  await page.getByText('nothing waits for a person').waitFor();
  await step('watching');
  await page.waitForFunction(() => /Asked (?!0)/.test(document.querySelector('.plot')?.getAttribute('aria-label') ?? ''));
  await page.waitForFunction(() => [...document.querySelectorAll('.keyed dd')].some((node) => Number(node.textContent) > 0));
  await dial(page, 'Solved').filter({ hasText: /^Solved(?!0\/s).*\/s/ }).waitFor();
  const words = await page.locator('.plot').first().getAttribute('aria-label');
  assert.match(words, /Throughput, per second: Asked .+ Solved/);
  await page.locator('.as-table summary').first().click();
  await page.getByRole('table', { name: 'Throughput' }).locator('tbody tr').first().waitFor();
  const drawn = await page.evaluate(() => {
    const figure = document.querySelector('.plot-of');
    const line = figure.querySelector('.plot polyline').getAttribute('points').split(' ');
    return [line.length, figure.querySelectorAll('tbody tr').length];
  });
  assert.ok(drawn[0] > 1 && drawn[0] === drawn[1], `every point of the plot is in its table: ${drawn}`);
  await step('seen');
  // All of them, each counted once: the usage of the day are those of the storm.
  await page.waitForFunction(() => /\b40 of 240 not bought again/.test(document.body.innerText));
  await dial(page, 'Open orders').filter({ hasText: /^Open orders0/ }).waitFor();
  await dial(page, 'Spent today').locator('.note', { hasText: /\b200 paid/ }).waitFor();
  await step('counted');
  await page.locator('#link-state', { hasText: 'Not connected' }).waitFor();
  await page.getByText('What you see is from').waitFor();
  await step('lost');
  await page.locator('#link-state[data-state=live]').waitFor();
  await page.locator('#spoken', { hasText: 'Connected again.' }).waitFor({ state: 'attached' });
  await page.evaluate(() => { location.hash = '#/usage'; });
  await page.getByRole('definition').first().waitFor();
  assert.deepEqual(await outside(page), []);
}

/** Views that are opened while no node answers say so, and have their content as soon as one does. */
export async function outage({ open, enter, step }) {
  const views = { '#/usage': 'No orders were placed in these days.', '#/pools': 'No pool is set up.', '#/alerts': 'Nothing is wrong.', '#/settings': 'alerts.clear_after', '#/search?q=example': 'No order matches.', '#/dead': 'Nothing waits for a person.' };
  const away = (page) => page.getByText('The daemon cannot be reached.');
  // Each is a browser of its own: one has only so many connections to a place.
  const pages = [];
  for (const [hash, words] of Object.entries(views)) {
    const page = await open();
    await enter(page);
    pages.push([page, hash, words]);
  }
  await step('watching');
  for (const [page, hash] of pages) {
    await page.locator('#link-state', { hasText: 'Not connected' }).waitFor();
    await page.evaluate((to) => { location.hash = to; }, hash);
    await away(page).waitFor();
  }
  await step('lost');
  for (const [page, , words] of pages) {
    await page.locator('#link-state[data-state=live]').waitFor();
    await page.locator('main').getByText(words).first().waitFor();
    assert.equal(await away(page).count(), 0);
    assert.equal(await page.locator('#spoken').filter({ hasText: 'Not connected' }).count(), 0, 'the page no longer says that it is away');
  }
}

const rows = (page) => page.getByRole('table', { name: 'Dead letters' }).locator('tbody tr');
const confirm = async (page, verb, words) => {
  const dialog = page.getByRole('dialog');
  for (const word of words) await dialog.getByText(word).first().waitFor();
  await dialog.getByRole('button', { name: verb, exact: true }).click();
  await dialog.waitFor({ state: 'hidden' });
};

/** One dead letter, understood, noted, replayed, and solved before one's eyes. */
export async function replay({ open, enter, visit }) {
  const page = await open();
  await enter(page);
  await page.locator('#count-dead').filter({ hasText: '1' }).waitFor();
  await menu(page, 'Dead letters').click();
  await rows(page).first().getByText('ERROR_NO_SLOT_AVAILABLE').waitFor();
  await rows(page).first().getByRole('link').click();
  await page.getByRole('heading', { name: /Waits for a person: Retries spent/ }).waitFor();
  const note = page.getByLabel('Note for the next reader');
  await note.fill('ü'.repeat(501));
  await page.getByText('Too long by 2 bytes.').waitFor();
  await note.fill('The provider is back.\nIt isn\'t "slow" any more.');
  await page.getByText(/^953 bytes left\./).waitFor();
  await page.getByRole('button', { name: 'Add the note' }).click();
  await page.locator('.timeline').getByText('The provider is back.').waitFor();
  assert.match(await page.locator('.timeline .lines').innerText(), /The provider is back\.\nIt isn't "slow" any more\.$/, 'a note has its lines');
  // A cancelled dialog changes nothing.
  await page.getByRole('button', { name: 'Replay…' }).click();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  await page.getByRole('heading', { name: /Waits for a person/ }).waitFor();
  await page.getByRole('button', { name: 'Replay…' }).click();
  await confirm(page, 'Replay', ['What it costs', 'What a replay does']);
  await page.locator('.sign', { hasText: 'Solved' }).waitFor();
  await page.locator('.timeline').getByText(/solved, /).waitFor();
  assert.equal(await page.getByRole('heading', { name: /Waits for a person/ }).count(), 0);
  await visit(page, '#/dead');
  await page.getByText('Nothing waits for a person.').waitFor();
}

/** Twelve dead letters: two are picked and dropped, and all others are replayed at once, with its cost shown before. */
export async function bulk({ open, enter }) {
  const page = await open();
  await enter(page);
  await page.locator('#count-dead').filter({ hasText: '12' }).waitFor();
  await menu(page, 'Dead letters').click();
  await rows(page).nth(11).waitFor();
  const whole = page.getByLabel('Pick all on this page');
  await whole.check();
  await page.getByRole('button', { name: 'Drop 12 picked…' }).waitFor();
  await whole.uncheck();
  for (const n of [0, 1]) await rows(page).nth(n).getByRole('checkbox').check();
  await page.getByRole('button', { name: 'Drop 2 picked…' }).click();
  await confirm(page, 'Drop', ['Dead letters', 'cannot be undone']);
  await page.waitForFunction(() => document.querySelectorAll('.dead-letters tbody tr').length === 10);
  await page.getByLabel('Cause').selectOption('in_doubt');
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  await page.getByText('No dead letter matches.').waitFor();
  await page.getByRole('link', { name: 'Clear' }).click();
  await rows(page).nth(9).waitFor();
  await page.getByRole('button', { name: 'Replay all that match…' }).click();
  await confirm(page, 'Replay', ['Would pay', 'What it costs']);
  await page.locator('.bulks').getByText(/10 of 10 replayed/).waitFor();
  await page.locator('.bulks .sign', { hasText: 'All answered' }).waitFor();
  await page.getByText('Nothing waits for a person.').waitFor();
  for (const name of ['Replay all that match…', 'Drop all that match…']) assert.equal(await page.getByRole('button', { name }).isDisabled(), true, name);
}

/** A replay of all that solves nothing: no tick, but what became of them, on every view; and they are in the list again. */
export async function futile({ open, enter, visit }) {
  const page = await open();
  await enter(page);
  await visit(page, '#/dead?kind=recaptcha_v2');
  await rows(page).nth(2).waitFor();
  await page.getByRole('button', { name: 'Drop all that match…' }).click();
  const dialog = page.getByRole('dialog');
  for (const words of ['kind recaptcha_v2', 'Spent so far']) await dialog.getByText(words).first().waitFor();
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'Replay all that match…' }).click();
  await confirm(page, 'Replay', ['kind recaptcha_v2', 'Would pay']);
  await page.locator('.bulks').getByText(/3 of 3 replayed/).waitFor();
  await visit(page, '#/usage');
  await page.locator('.bulks .sign', { hasText: 'Ended, not all answered' }).waitFor();
  await page.locator('.bulks').getByText(/0 answered, 0 failed, 3 dead again, 0 on their way/).waitFor();
  await visit(page, '#/dead');
  await rows(page).nth(2).waitFor();
  await page.getByRole('button', { name: /^Hide no/ }).click();
  await page.locator('.bulks').waitFor({ state: 'hidden' });
}

/** An alert is raised, acknowledged by an operator, and cleared when the fault is fixed. */
export async function alert({ open, enter, step, visit }) {
  const page = await open();
  await enter(page);
  await step('watching');
  await page.locator('.strip a').first().waitFor();
  await page.locator('#count-alerts').filter({ hasText: /[1-9]/ }).waitFor();
  await page.locator('.sign', { hasText: 'Paused' }).waitFor();
  await page.locator('.strip a').first().click();
  await page.getByRole('heading', { name: 'Alerts', exact: true }).waitFor();
  const paused = page.locator('.alerts li').filter({ hasText: /provider/i }).first();
  await paused.getByRole('button', { name: /I have seen it/ }).click();
  await paused.getByText(/, seen /).waitFor();
  assert.notEqual(await page.evaluate(() => document.activeElement.tagName), 'BODY', 'keyboard users go on here');
  await step('risen');
  await paused.getByRole('button', { name: 'Resume held orders…' }).click();
  await confirm(page, 'Resume', ['paid for']);
  await visit(page, '#/');
  await page.locator('.sign', { hasText: 'OK' }).waitFor();
  await visit(page, '#/alerts');
  await page.locator('.alerts li.cleared').filter({ hasText: /provider/i }).first().waitFor({ timeout: 180_000 });
}

/** A provider is paused and resumed with the keyboard alone. */
export async function providers({ open, enter, visit }) {
  const page = await open();
  await enter(page);
  await visit(page, '#/providers');
  const row = page.getByRole('table', { name: 'Providers' }).locator('tbody tr').first();
  await row.locator('.sign', { hasText: 'OK' }).waitFor();
  const press = async (name, verb, state) => {
    const act = row.getByRole('button', { name: new RegExp(`^${name} `) });
    await act.focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog');
    await dialog.waitFor();
    await dialog.getByRole('button', { name: verb, exact: true }).focus();
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'hidden' });
    await row.locator('.sign', { hasText: state }).waitFor();
    assert.notEqual(await page.evaluate(() => document.activeElement.tagName), 'BODY', 'keyboard users continue here');
  };
  await press('Pause', 'Pause', 'Paused');
  await row.getByText('a person has paused it').waitFor();
  await press('Drain', 'Drain', 'Drained');
  await press('Resume', 'Resume', 'OK');
}

/** A changed file is shown before it is applied; a wrong one is refused with its line, and nothing changes. */
export async function reload({ open, enter, visit, step }) {
  const page = await open();
  await enter(page);
  await visit(page, '#/settings');
  const dialog = page.getByRole('dialog');
  const press = () => page.getByRole('button', { name: 'Reload the file…' }).click();
  await press();
  await dialog.getByText('Nothing differs').waitFor();
  assert.ok(await dialog.getByRole('button', { name: 'Apply', exact: true }).isDisabled());
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await step('changed');
  await press();
  const change = dialog.getByRole('row', { name: /usage\.detail_days/ });
  await change.getByText('at once').waitFor();
  await dialog.getByRole('button', { name: 'Apply', exact: true }).click();
  await dialog.waitFor({ state: 'hidden' });
  await page.getByLabel('Find', { exact: true }).fill('usage.detail_days');
  await page.getByRole('row', { name: /usage\.detail_days 5/ }).waitFor();
  await step('wrong');
  await press();
  await dialog.getByText('usage.detail_days').waitFor();
  await dialog.getByText('Nothing has changed').waitFor();
}

const VIEWS = { overview: '#/', dead: '#/dead', search: '#/search?q=example', usage: '#/usage', providers: '#/providers', budgets: '#/budgets', pools: '#/pools', alerts: '#/alerts', settings: '#/settings' };

async function firstOrder(page, visit) {
  await visit(page, '#/dead');
  const link = rows(page).first().getByRole('link');
  await link.waitFor();
  return link.getAttribute('href');
}

/** Every view in both themes, wide and on a phone: no view scrolls sideways, and the checker finds nothing serious. */
export async function looks({ open, enter, visit, flaws }) {
  const shots = process.env.QUITTANCE_SHOTS;
  const found = [];
  for (const [theme, width] of [['light', 1280], ['dark', 1280], ['light', 360], ['dark', 360]]) {
    const page = await open({ theme, width });
    await enter(page);
    const views = { ...VIEWS, order: await firstOrder(page, visit) };
    for (const [name, hash] of Object.entries(views)) {
      await visit(page, hash);
      await page.getByRole('heading', { level: 1 }).waitFor();
      for (const flaw of await outside(page)) found.push(`${name} at ${width}: ${flaw}`);
      for (const flaw of await flaws(page)) found.push(`${name}, ${theme}, ${width}: ${flaw}`);
      if (shots) await page.screenshot({ path: `${shots}/${name}-${theme}-${width}.png` });
    }
    await page.context().close();
  }
  assert.deepEqual(found, []);
}

/** The theme follows the system, or the chosen one, also the next time. */
export async function themes({ open, enter }) {
  const paper = (page) => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const dark = await open({ theme: 'dark' });
  await enter(dark);
  const night = await paper(dark);
  const page = await open({ theme: 'light' });
  await enter(page);
  const day = await paper(page);
  assert.notEqual(day, night);
  const chooser = page.getByRole('button', { name: /^Theme/ });
  for (const [words, colour] of [['Theme: light', day], ['Theme: dark', night]]) {
    await chooser.click();
    await chooser.filter({ hasText: words }).waitFor();
    assert.equal(await paper(page), colour);
  }
  await page.reload();
  await page.locator('#link-state', { hasText: 'Live' }).waitFor();
  assert.equal(await paper(page), night, 'it is remembered');
}

/** Keys alone: past the navigation, through it, and in and out of a dialog. */
export async function keys({ open, enter }) {
  const page = await open();
  await enter(page);
  const focused = () => page.evaluate(() => document.activeElement.textContent.trim());
  await page.reload();
  await page.locator('#link-state', { hasText: 'Live' }).waitFor();
  await page.keyboard.press('Tab');
  assert.equal(await focused(), 'Skip to the content');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'main');
  await menu(page, 'Dead letters').focus();
  await page.keyboard.press('Enter');
  await rows(page).first().waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.id), 'main', 'a new view has the focus');
  const drop = rows(page).first().getByRole('button', { name: /^Drop/ });
  await drop.focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  assert.equal(await focused(), 'Cancel', 'the harmless one has the focus');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  assert.equal(await drop.evaluate((node) => node === document.activeElement), true, 'the focus is where it was');
  // After one entry the focus goes to the next, and after the last to the heading.
  const act = async () => {
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
  };
  const next = await rows(page).nth(1).getByRole('button', { name: /^Drop/ }).getAttribute('aria-label');
  await act();
  await page.waitForFunction((label) => document.activeElement.getAttribute('aria-label') === label, next);
  await rows(page).first().getByRole('link').focus();
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Replay…' }).focus();
  await act();
  await page.waitForFunction(() => !document.querySelector('.dead-letter') && document.activeElement.matches('main h1'));
  await menu(page, 'Dead letters').focus();
  await page.keyboard.press('Enter');
  await rows(page).first().getByRole('button', { name: /^Drop/ }).focus();
  await act();
  await page.waitForFunction(() => document.activeElement.matches('main h1'));
}

/** What callers and providers sent is text, wherever it shows, and nothing of it runs. */
export async function hostile({ open, enter, visit }) {
  const page = await open();
  await enter(page);
  const unharmed = async (where) => {
    const found = await page.evaluate(() => ({ ran: window.ran ?? false, strange: document.querySelectorAll('main img, main script, main iframe, main b, main style').length }));
    assert.deepEqual(found, { ran: false, strange: 0 }, where);
  };
  await page.locator('#count-dead').filter({ hasText: /[1-9]/ }).waitFor();
  await visit(page, '#/dead');
  await page.getByText('<img src=x').first().waitFor();
  await unharmed('dead letters');
  await visit(page, await firstOrder(page, visit));
  await page.locator('.raw', { hasText: '<script>window.ran=1</script>' }).first().waitFor();
  const all = await page.locator('main').innerText();
  assert.ok(all.includes('\\u{202e}') && !all.includes('\u202e') && !all.includes('\u001b'), 'what cannot be seen is spelt out');
  await unharmed('the order');
  for (const hash of ['#/search?q=%3Cimg%20src%3Dx%20onerror%3Dwindow.ran%3D1%3E', '#/<img src=x>', '#/order/<img src=x>', '#/usage?by=site&from=<b>', '#/dead?site=<b>']) {
    await visit(page, hash);
    await unharmed(hash);
  }
  await visit(page, '#/usage?by=site,kind');
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download as CSV' }).click()]);
  const text = fs.readFileSync(await file.path(), 'utf8');
  const heads = text.split('\r\n')[0].split(',');
  assert.ok(heads.includes('asked') && heads.includes('cost_micros'), text);
  for (const line of text.split('\r\n').filter(Boolean)) assert.ok(!/^[=+\-@\t]/.test(line), line);
}
