// Sets the theme before the page is painted, so that a dark page never flashes white. This is a script and not a module,
// because modules load late.
'use strict';
try {
  const chosen = localStorage.getItem('quittance.theme');
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
} catch {
  // A browser without storage follows the system.
}
