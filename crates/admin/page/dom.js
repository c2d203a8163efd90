// Builds the page from elements and text, never from markup. Text from callers is shown with control characters and changes
// of writing direction spelt out, so that it cannot pose as something else.

const SVG = 'http://www.w3.org/2000/svg';
const UNSEEN = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** The text with all invisible characters spelt out. */
export function harmless(text) {
  return String(text).replace(UNSEEN, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}

function add(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(harmless(child)));
  }
  return node;
}

function traits(node, given) {
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'on') for (const [event, act] of Object.entries(value)) node.addEventListener(event, act);
    else if (name === 'value') node.value = value;
    else node.setAttribute(name, value === true ? '' : harmless(value));
  }
  return node;
}

/** Creates an element. `given` are its attributes, and `on` its listeners. */
export function el(name, given = {}, ...children) {
  return add(traits(document.createElement(name), given), children);
}

export function svg(name, given = {}, ...children) {
  return add(traits(document.createElementNS(SVG, name), given), children);
}

export function fill(node, ...children) {
  node.replaceChildren();
  return add(node, children);
}

/** Sets a text only if it has changed: an unchanged text is neither painted nor read aloud again. */
export function say(node, text) {
  const plain = harmless(text);
  if (node.textContent !== plain) node.textContent = plain;
}

const FOCUSABLE = 'a, button, input, summary, [tabindex]';

/** Moves the focus to the heading of the view, for when the focused element is gone. */
export function toHeading() {
  const heading = document.querySelector('main h1');
  heading?.setAttribute('tabindex', '-1');
  heading?.focus({ preventScroll: true });
}

/** The state of a part of the page before it is built again: the focus, what is open, and the scroll position. */
function habits(node) {
  // If the focused element is gone, the next element with its action takes its place.
  const { action } = document.activeElement?.dataset ?? {};
  const alike = action ? `[data-action="${CSS.escape(action)}"]` : FOCUSABLE;
  const focus = [...node.querySelectorAll(alike)].indexOf(document.activeElement);
  const opened = [...node.querySelectorAll('details')].map((one) => one.open);
  const scrolls = [...node.querySelectorAll('.scrolled')].map((one) => one.scrollLeft);
  return () => {
    node.querySelectorAll('details').forEach((one, n) => { one.open = opened[n] ?? false; });
    node.querySelectorAll('.scrolled').forEach((one, n) => { one.scrollLeft = scrolls[n] ?? 0; });
    if (focus < 0) return;
    const next = node.querySelectorAll(alike)[focus];
    if (next) next.focus({ preventScroll: true });
    else toHeading();
  };
}

/** Fills a place again, and keeps the focus in it. */
export function refill(node, ...children) {
  const restore = habits(node);
  fill(node, ...children);
  restore();
}

/** Fills a place again only if its content has changed, and keeps what the user did to it. */
export function place(node) {
  let shown;
  return (facts, make) => {
    const now = JSON.stringify(facts);
    if (now === shown) return;
    shown = now;
    refill(node, make(facts));
  };
}

/** Reads a text aloud without showing it: the result of a button. */
export function speak(words) {
  say(document.getElementById('spoken'), words);
}

// Roles are set although the elements imply them: on a narrow screen some tables are laid out as lists, and browsers then do
// not treat them as tables.
export function table(caption, heads, rows, traitsOfTable = {}) {
  const cell = (content, index) => {
    const head = heads[index];
    const given = { class: head.number ? 'number' : null };
    return index === 0 && head.isRowHead ? el('th', { ...given, scope: 'row', role: 'rowheader' }, content) : el('td', { ...given, role: 'cell' }, content);
  };
  return el('table', { role: 'table', ...traitsOfTable },
    el('caption', { class: 'unseen' }, caption),
    el('thead', { role: 'rowgroup' }, el('tr', { role: 'row' }, heads.map((head) =>
      el('th', { scope: 'col', role: 'columnheader', class: head.number ? 'number' : null }, head.isUnseen ? el('span', { class: 'unseen' }, head.name) : head.name)))),
    el('tbody', { role: 'rowgroup' }, rows.map((row) => el('tr', { role: 'row', ...row.traits }, (row.cells ?? row).map(cell)))));
}

/** A part that may be wider than the screen, and scrolls by itself, also with the keyboard. */
export function scrolled(label, inner) {
  return el('div', { class: 'scrolled', role: 'group', tabindex: '0', 'aria-label': label }, inner);
}

export function facts(pairs) {
  return el('dl', { class: 'facts' }, pairs.filter(Boolean).map(([name, value, style]) => el('div', { class: style }, el('dt', {}, name), el('dd', {}, value))));
}

/** A name that is cut off at the width of its column, with the full text on hover. */
export function clipped(text) {
  return el('span', { class: 'clipped', title: text }, text);
}

export function button(words, act, given = {}) {
  return el('button', { type: 'button', ...given, on: { click: act } }, words);
}
