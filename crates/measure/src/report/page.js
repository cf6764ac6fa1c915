(() => {
'use strict';
// The charts are in the page; this only hides drivers and switches colours.
for (const section of document.querySelectorAll('.case'))
  for (const button of section.querySelectorAll('.legend button')) {
    button.hidden = false;
    button.onclick = () => {
      const hidden = section.classList.toggle(`hide${button.dataset.series}`);
      button.setAttribute('aria-pressed', !hidden);
    };
  }

const theme = document.getElementById('theme'), root = document.documentElement;
const dark = () => root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
const say = () => { theme.textContent = dark() ? 'Light' : 'Dark'; theme.title = `Switch to ${dark() ? 'light' : 'dark'} colours`; };
theme.hidden = false;
theme.onclick = () => { root.dataset.theme = dark() ? 'light' : 'dark'; say(); };
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', say);
say();
})();
