// Questions before anything is done that costs money or cannot be undone. A dialog says what will happen and what it costs, and
// every other way closes it without an action.

import { button, el, fill, speak, toHeading } from './dom.js';

/** A word for what went wrong, and what can be done about it. */
export function errorBox(error) {
  return el('div', { class: 'error', role: 'alert' }, el('p', {}, el('strong', {}, error.message)), error.hint ? el('p', {}, error.hint) : null);
}

/** For a view that has nothing to show because of it. What may pass by itself is marked, and then the frame loads the view again. */
export function unloaded(error) {
  const mayPass = !error.status || error.status >= 500;
  const hint = [error.hint, mayPass && 'This page tries again by itself.'].filter(Boolean).join(' ');
  return el('div', { 'data-unloaded': mayPass }, errorBox({ message: error.message, hint }));
}

/**
 * Asks, and does it. `content` is what is shown at first, or a promise of it (then the action waits for it). `action` is called when
 * it is confirmed; what it returns is what the dialog comes to, and what it throws is shown in the dialog.
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
      // What it was opened from may have gone in the meantime.
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
