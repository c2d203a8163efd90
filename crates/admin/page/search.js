// The search: by id, by key or its beginning, by idempotency key, by a part of the site's name, by tenant or by kind.

import { ask, withQuery } from './ask.js';
import { unloaded } from './dialog.js';
import { clipped, el, fill, scrolled, speak, table } from './dom.js';
import { at, count, millis } from './figures.js';
import { ofOrder, orderLink } from './status.js';

const PAGE = 50;
const HEADS = [{ name: 'Order', isRowHead: true }, { name: 'Status' }, { name: 'Kind' }, { name: 'Site' }, { name: 'Tenant' }, { name: 'Provider' }, { name: 'Attempts', number: true }, { name: 'Placed' }];

export function search({ query }) {
  const wanted = query.get('q') ?? '';
  const after = query.get('after') ?? '';
  const leaving = new AbortController();
  const found = el('div', {});
  const input = el('input', { id: 'q', name: 'q', type: 'search', value: wanted, autocomplete: 'off', spellcheck: 'false', maxlength: '2048', 'aria-describedby': 'q-hint' });
  const form = el('form', { class: 'search', role: 'search', 'aria-label': 'Orders', on: { submit: (event) => {
    event.preventDefault();
    location.hash = withQuery('#/search', { q: input.value.trim() });
  } } }, el('label', { for: 'q' }, 'Find an order'), el('div', { class: 'row' }, input, el('button', { type: 'submit', class: 'primary' }, 'Search')),
  el('p', { id: 'q-hint', class: 'hint' }, 'An id, a key or at least the first 6 of its digits, the key that its caller chose (Idempotency-Key), a part of a site’s name or the address of a page of it, a tenant, or a kind.'));

  async function load() {
    if (!wanted) return;
    if (!found.hasChildNodes()) fill(found, el('p', { class: 'soft' }, 'Looking…'));
    try {
      const { orders, next } = await ask(withQuery('/v1/admin/find', { q: wanted, after, limit: PAGE }), { signal: leaving.signal });
      const isNamed = /^[0-9a-f]{64}$/.test(wanted) || /^[1-9][0-9]{5,15}$/.test(wanted);
      if (orders.length === 1 && !next && isNamed) return location.replace(`#/order/${orders[0].key}`);
      const nothing = next ? 'No match so far; there are more orders to search.' : 'No order matches.';
      fill(found,
        orders.length ? scrolled('Orders found', table('Orders found', HEADS, orders.map((order) => [
          orderLink(order.key), ofOrder(order), order.kind, clipped(order.site), clipped(order.tenant), clipped(order.provider || '–'), count(order.attempts), at(millis(order.created_at)),
        ]))) : el('p', { class: 'empty' }, nothing),
        el('nav', { class: 'pages', 'aria-label': 'Pages' }, next ? el('a', { href: withQuery('#/search', { q: wanted, after: next }) }, orders.length ? 'Next page' : 'Look further') : null));
      speak(orders.length ? `${orders.length} found${next ? ', and there may be more' : ''}.` : nothing);
    } catch (error) {
      if (!leaving.signal.aborted) fill(found, unloaded(error));
    }
  }

  const node = el('div', {}, el('div', { class: 'head' }, el('h1', {}, 'Search')), form, found);
  load();
  if (!wanted) queueMicrotask(() => input.focus());
  return { title: 'Search', node, load, close: () => leaving.abort() };
}
