
(() => {
'use strict';
// A click makes a box as wide as the page, and those it calls with it.
for (const flame of document.querySelectorAll('.flame')) {
  const boxes = [...flame.children].map(box => ({
    box, x: parseFloat(box.style.left), w: parseFloat(box.style.width), y: parseFloat(box.style.top),
    name: box.title.slice(0, box.title.lastIndexOf(' (')),
  }));
  const zoom = to => {
    for (const { box, x, w, y, name } of boxes) {
      const caller = y <= to.y && x <= to.x + .01 && x + w >= to.x + to.w - .01;
      const inside = y > to.y && x >= to.x - .01 && x + w <= to.x + to.w + .01;
      box.hidden = !caller && !inside;
      const left = caller ? 0 : (x - to.x) / to.w * 100, width = caller ? 100 : w / to.w * 100;
      box.style.left = `${left}%`;
      box.style.width = `${width}%`;
      box.textContent = width > 2 ? name : '';
    }
  };
  for (const of of boxes) of.box.onclick = () => zoom(of);
}
})();
