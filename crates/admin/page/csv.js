// Writes a table as a file for spreadsheets. A value that begins like a formula gets an apostrophe, and no value breaks a
// line.

import { harmless } from './dom.js';

function cell(value) {
  if (typeof value === 'number') return String(value);
  const text = harmless(value ?? '').replaceAll('\n', '\\u{a}');
  const safe = /^[=+\-@]/.test(text) || /^[\t\r]/.test(String(value)) ? `'${text}` : text;
  return /[",';\s]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export const csv = (heads, rows) => [heads, ...rows].map((row) => row.map(cell).join(',')).join('\r\n') + '\r\n';

export function download(name, text) {
  const place = URL.createObjectURL(new Blob([text], { type: 'text/csv;charset=utf-8' }));
  const link = document.createElement('a');
  link.href = place;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(place), 10_000);
}
