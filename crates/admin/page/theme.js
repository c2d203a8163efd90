// Before anything is painted, so that a dark page never flashes white. A script of its own and no module: modules come late.
'use strict';
try {
  const chosen = localStorage.getItem('quittance.theme');
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
} catch {
  // A browser that keeps nothing follows the system.
}
