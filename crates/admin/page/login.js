// The login: the operator types the key, which is kept in this tab until it is closed.

import { ask, key } from './ask.js';
import { errorBox } from './dialog.js';
import { el, fill } from './dom.js';

export function login({ admit, why }) {
  const message = el('div', {}, why ? errorBox({ message: 'This key is not accepted any more.', hint: why.message }) : null);
  const typed = el('input', { id: 'key', type: 'password', autocomplete: 'current-password', required: true, spellcheck: 'false', autocapitalize: 'none', 'aria-describedby': 'key-hint' });
  const enter = el('button', { type: 'submit', class: 'primary' }, 'Log in');

  async function knock(event) {
    event.preventDefault();
    const text = typed.value.trim();
    // A text that cannot be sent in a header is no key.
    if (!/^[\x21-\x7e]{1,512}$/.test(text)) return fill(message, errorBox({ message: 'This is not a key.', hint: 'A key has visible ASCII characters only.' }));
    enter.disabled = true;
    fill(message);
    key.keep(text);
    try {
      await ask('/v1/admin/state');
      typed.value = '';
      admit();
    } catch (error) {
      key.forget();
      const isRefused = error.status === 401 || error.status === 403;
      fill(message, errorBox(isRefused ? { message: 'The daemon refuses this key.', hint: error.message } : error));
      enter.disabled = false;
      typed.focus();
      typed.select();
    }
  }

  const node = el('section', { class: 'login' },
    el('h1', {}, 'Log in'),
    el('p', { class: 'soft' }, 'What was asked, paid and saved, and what waits for a person.'),
    el('form', { on: { submit: knock } },
      el('label', { for: 'key' }, 'The operator’s key'), typed,
      el('p', { id: 'key-hint', class: 'hint' }, 'It was shown once, by ', el('code', {}, 'quittance tenant new --admin'), '. It is kept in this tab only, until you close it.'),
      message, enter));
  queueMicrotask(() => typed.focus());
  return { title: 'Log in', node };
}
