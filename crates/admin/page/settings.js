// The settings in force, and the origin of each. Secrets are not shown, only whether they are set. A button has the daemon read
// its configuration again, after it has shown what would change.

import { ask } from './ask.js';
import { confirmed, unloaded } from './dialog.js';
import { button, el, fill, scrolled, speak, table } from './dom.js';
import { count } from './figures.js';

const HEADS = [{ name: 'Name', isRowHead: true }, { name: 'Value' }, { name: 'From' }];

const CHANGE_HEADS = [{ name: 'Name', isRowHead: true }, { name: 'In use' }, { name: 'In the file' }, { name: 'Effect' }];
const EFFECTS = { live: 'at once', restart: 'needs a restart' };

/** What reading the configuration again would change. */
async function changes() {
  const { changes: all, notes } = await ask('/v1/admin/reload?dry_run=true', { method: 'POST' });
  const cells = (one) => [el('code', {}, one.name), one.from ?? 'not set', one.to ?? 'not set', EFFECTS[one.effect] ?? one.effect];
  const list = all.length
    ? scrolled('Changes', table('What would change', CHANGE_HEADS, all.map((one) => ({ cells: cells(one) })), { class: 'stacked' }))
    : el('p', { class: 'empty' }, 'Nothing differs from the settings in use.');
  const restart = all.some((one) => one.effect === 'restart')
    ? el('p', {}, 'What needs a restart keeps its value until the daemon is restarted.')
    : null;
  const node = el('div', {}, list, restart, notes.map((note) => el('p', { class: 'soft' }, note)));
  return { node, isPossible: all.some((one) => one.effect === 'live') };
}

export function settings() {
  const leaving = new AbortController();
  const list = el('div', {}, el('p', { class: 'soft' }, 'Looking…'));
  const number = el('p', { class: 'soft', role: 'status' });
  let all = [];

  function show() {
    const wanted = filter.value.trim().toLowerCase();
    const some = all.filter((one) => `${one.name} ${one.value} ${one.origin}`.toLowerCase().includes(wanted));
    fill(number, `${count(some.length)} of ${count(all.length)}`);
    fill(list, some.length ? scrolled('Settings', table('Settings in force', HEADS, some.map((one) => ({
      traits: { class: one.origin === 'default' ? 'usual' : null },
      cells: [el('code', {}, one.name), el('span', { class: 'raw' }, String(one.value)), one.origin],
    })), { class: 'stacked' })) : el('p', { class: 'empty' }, 'No setting matches.'));
  }

  const filter = el('input', { id: 'setting', type: 'search', autocomplete: 'off', spellcheck: 'false', on: { input: show } });
  const node = el('div', {}, el('div', { class: 'head' }, el('h1', {}, 'Settings in force'), number,
    button('Reload the file…', reload, { 'data-action': 'reload' })),
    el('div', { class: 'filters' }, el('div', { class: 'field' }, el('label', { for: 'setting' }, 'Find'), filter)), list);

  async function load() {
    try {
      all = (await ask('/v1/admin/settings', { signal: leaving.signal })).settings;
      show();
    } catch (error) {
      if (!leaving.signal.aborted) fill(list, unloaded(error));
    }
  }

  async function reload() {
    const done = await confirmed({
      title: 'Reload the configuration?',
      content: changes(),
      verb: 'Apply',
      action: () => ask('/v1/admin/reload', { method: 'POST' }),
    });
    if (!done) return;
    speak(done.notes.length ? `Applied. ${done.notes.join(' ')}` : 'Applied.');
    await load();
  }

  load();
  return { title: 'Settings', node, load, close: () => leaving.abort() };
}
