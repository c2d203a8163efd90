// Questions before an action that costs money or cannot be undone. A dialog shows what will happen and what it costs. Every
// other way to close it does nothing.

import { button, el, fill, speak, toHeading } from './dom.js';

/** An error and what to do about it. */
export function errorBox(error) {
  return el('div', { class: 'error', role: 'alert' }, el('p', {}, el('strong', {}, error.message)), error.hint ? el('p', {}, error.hint) : null);
}

/** A view that could not be loaded. A passing error is marked, and then the frame loads the view again. */
export function unloaded(error) {
  const mayPass = !error.status || error.status >= 500;
  const hint = [error.hint, mayPass && 'This page tries again by itself.'].filter(Boolean).join(' ');
  return el('div', { 'data-unloaded': mayPass }, errorBox({ message: error.message, hint }));
}

/**
 * Asks, and then acts. `content` is shown at first; if it is a promise, `action` waits for it. `action` is called after the
 * user confirms. The dialog shows its result, or its error.
 */
export function confirmed({ title, content, verb, isGrave = false, action }) {
  return new Promise((settle) => {
    let outcome;
    const body = el('div', { class: 'body' });
    const wrong = el('div', {});
    const act = button(verb, async () => {
      act.disabled = true;
      fill(wrong);
      try {
        outcome = await action();
        dialog.close();
      } catch (error) {
        fill(wrong, errorBox(error));
        act.disabled = false;
        act.focus();
      }
    }, { class: isGrave ? 'grave' : 'primary' });
    const dialog = el('dialog', { 'aria-labelledby': 'dialog-title', on: { close: () => {
      dialog.remove();
      // The element that opened the dialog may be gone.
      if (document.activeElement === document.body) toHeading();
      settle(outcome);
    } } },
      el('h2', { id: 'dialog-title' }, title), body, wrong,
      el('div', { class: 'acts' }, button('Cancel', () => dialog.close(), { class: 'quiet', autofocus: true }), act));
    document.body.append(dialog);
    if (content instanceof Promise) {
      act.disabled = true;
      fill(body, el('p', { class: 'soft' }, 'Counting what it would do…'));
      content.then((made) => {
        fill(body, made.node ?? made);
        act.disabled = made.isPossible === false;
        speak(body.textContent);
      }, (error) => fill(body, errorBox(error)));
    } else {
      fill(body, content);
    }
    dialog.showModal();
  });
}
