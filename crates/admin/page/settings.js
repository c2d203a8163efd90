// The settings in force, and the origin of each. Secrets are not shown, only whether they are set.

import { ask } from './ask.js';
import { unloaded } from './dialog.js';
import { el, fill, scrolled, table } from './dom.js';
import { count } from './figures.js';

const HEADS = [{ name: 'Name', isRowHead: true }, { name: 'Value' }, { name: 'From' }];

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
  const node = el('div', {}, el('div', { class: 'head' }, el('h1', {}, 'Settings in force'), number),
    el('div', { class: 'filters' }, el('div', { class: 'field' }, el('label', { for: 'setting' }, 'Find'), filter)), list);

  async function load() {
    try {
      all = (await ask('/v1/admin/settings', { signal: leaving.signal })).settings;
      show();
    } catch (error) {
      if (!leaving.signal.aborted) fill(list, unloaded(error));
    }
  }

  load();
  return { title: 'Settings', node, load, close: () => leaving.abort() };
}
