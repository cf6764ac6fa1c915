(() => {
'use strict';
// Draws the charts of every section from its table. Text goes through esc().
const esc = text => String(text).replace(/[&<>"']/g, c => `&#${c.charCodeAt(0)};`);
const num = text => parseFloat(text.replace(/\u202f/g, ''));
const range = text => text.includes('–') ? text.split('–').map(num) : [NaN, NaN];

// Rows of a section: the columns are those of the table.
const read = section => [...section.querySelectorAll('.figures tbody tr')].map(row => {
  const t = [...row.cells].map(cell => cell.textContent.trim());
  return { size: num(t[0]), driver: t[1], rate: num(t[2]) * 1e6, rateCi: range(t[3]).map(v => v * 1e6),
    times: num(t[4]), timesCi: range(t[5]), load: num(t[6]), kernel: num(t[8]) * num(t[2]) / 10,
    p50: num(t[9]), p99: num(t[10]), noisy: t[14] === 'noisy' };
});

const digits = v => v === 0 ? '0' : v >= 1000 ? v.toFixed(0) : String(+v.toPrecision(v < 1 ? 2 : 3));
const scaled = units => v => {
  const unit = units.find(u => v >= u[0] * .9995) || units[units.length - 1];
  return `${digits(v / unit[0])} ${unit[1]}`;
};
const fmtRate = scaled([[1e9, 'GB/s'], [1e6, 'MB/s'], [1e3, 'kB/s'], [1, 'B/s']]);
const fmtTime = scaled([[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']]);
const fmtLoad = v => `${digits(v)} %`;
const fmtTimes = v => `${digits(v)}×`;
const fmtSize = v => {
  for (const [unit, name] of [[2 ** 30, 'Gi'], [2 ** 20, 'Mi'], [1024, 'Ki']])
    if (v >= unit && v % unit === 0) return `${v / unit} ${name}`;
  return String(v);
};
const fmtAbout = v => {
  const unit = [[2 ** 30, ' Gi'], [2 ** 20, ' Mi'], [1024, ' Ki'], [1, '']].find(u => v >= u[0]) || [1, ''];
  return `${+(v / unit[0]).toPrecision(2)}${unit[1]}`;
};

const short = name => name.length > 14 ? name.slice(0, 13) + '…' : name;

// Markers by series, so that nobody has to tell colours apart.
const shapes = [
  (x, y, r) => `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`,
  (x, y, r) => `M${x - r * .9} ${y - r * .9}h${r * 1.8}v${r * 1.8}h${-r * 1.8}z`,
  (x, y, r) => `M${x} ${y - r * 1.2}l${r * 1.15} ${r * 2}h${-r * 2.3}z`,
  (x, y, r) => `M${x} ${y - r * 1.3}l${r * 1.3} ${r * 1.3}l${-r * 1.3} ${r * 1.3}l${-r * 1.3} ${-r * 1.3}z`,
  (x, y, r) => `M${x} ${y + r * 1.2}l${r * 1.15} ${-r * 2}h${-r * 2.3}z`,
  (x, y, r) => `M${x - r * 1.2} ${y}l${r * .6} ${-r}h${r * 1.2}l${r * .6} ${r}l${-r * .6} ${r}h${-r * 1.2}z`,
  (x, y, r) => `M${x - r * .45} ${y - r * 1.2}h${r * .9}v${r * .75}h${r * .75}v${r * .9}h${-r * .75}v${r * .75}h${-r * .9}v${-r * .75}h${-r * .75}v${-r * .9}h${r * .75}z`,
  (x, y, r) => `M${x} ${y - r * 1.2}l${r * 1.2} ${r * .9}l${-r * .45} ${r * 1.4}h${-r * 1.5}l${-r * .45} ${-r * 1.4}z`,
];
const mark = (series, x, y, r, noisy) => `<path class="mark ${noisy ? 'noisy l' : 'f'}${series}" d="${shapes[series](x, y, r)}"/>`;
const key = series => `<svg viewBox="0 0 30 14" aria-hidden="true"><path class="curve l${series}" d="M1 7h28"/>${mark(series, 15, 7, 4.5)}</svg>`;
const icon = series => `<svg viewBox="0 0 12 12" aria-hidden="true">${mark(series, 6, 6, 4.5)}</svg>`;

const logTicks = (low, high) => {
  const all = steps => {
    const ticks = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e++)
      for (const step of steps) {
        const v = step * 10 ** e;
        if (v >= low * .999 && v <= high * 1.001) ticks.push(+v.toPrecision(6));
      }
    return ticks;
  };
  for (const steps of [[1], [1, 3], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 6, 8]]) {
    const ticks = all(steps);
    if (ticks.length >= 4) return ticks.length > 9 ? ticks.filter((_, i) => i % 2 === 0) : ticks;
  }
  return [...new Set([low, Math.sqrt(low * high), high].map(v => +v.toPrecision(3)))];
};
const linearTicks = high => {
  const raw = high / 5, unit = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].find(s => s * unit >= raw) * unit;
  return Array.from({ length: Math.floor(high / step + 1e-9) + 1 }, (_, i) => +(i * step).toPrecision(6));
};

// One chart. spec: title, note, format, linear, one, from, to, height,
// base, crossings [[series, size]], curves [{driver, series, second, points: [{x, y, low, high, row}]}].
function draw(figure, spec) {
  const plot = figure.querySelector('.plot');
  const width = Math.max(240, plot.clientWidth), height = spec.height;
  const inside = p => p.y > 0 || (spec.linear && p.y >= 0);
  const curves = spec.curves.map(c => ({ ...c, points: c.points.filter(inside) }));
  const points = curves.flatMap(c => c.points.filter(p => p.x >= spec.from && p.x <= spec.to));
  if (!points.length) { plot.innerHTML = '<p class="note">Nothing to draw.</p>'; return; }
  const values = points.flatMap(p => [p.y, p.low, p.high]).filter(v => v > 0);
  if (spec.one) values.push(1);
  let low = spec.linear ? 0 : Math.min(...values), high = Math.max(...values, spec.linear ? 100 : 0);
  const room = spec.linear ? 1.06 : Math.max(1.08, (high / low) ** .06);
  high *= room; if (!spec.linear) low /= room;
  const ticks = spec.linear ? linearTicks(high) : logTicks(low, high);
  const labels = ticks.map(spec.format);
  const left = 12 + 6.8 * Math.max(...labels.map(l => l.length)), right = spec.names && width > 420 ? 12 + 7.4 * Math.max(...curves.map(c => short(c.driver).length)) : 14;
  const top = spec.crossings.length ? 26 : 10, bottom = height - 40;
  const [x0, x1] = [Math.log(spec.from), Math.log(spec.to)].map((v, i) => spec.from === spec.to ? v + i * 2 - 1 : v);
  const pad = 8, sx = v => left + pad + (Math.log(v) - x0) / (x1 - x0) * (width - left - right - 2 * pad);
  const [y0, y1] = spec.linear ? [low, high] : [Math.log(low), Math.log(high)];
  const sy = v => bottom - ((spec.linear ? v : Math.log(v)) - y0) / (y1 - y0) * (bottom - top);
  const f = v => v.toFixed(1);
  let svg = '';
  ticks.forEach((v, i) => {
    svg += `<path class="grid" d="M${f(left)} ${f(sy(v))}H${f(width - right)}"/><text x="${f(left - 7)}" y="${f(sy(v) + 4)}" text-anchor="end">${esc(labels[i])}</text>`;
  });
  const sizes = [...new Set(points.map(p => p.x))].sort((a, b) => a - b);
  // Round sizes first: of two labels that would collide the odd one goes.
  const order = [...sizes].sort((a, b) => (a & (a - 1) ? 1 : 0) - (b & (b - 1) ? 1 : 0));
  const taken = [];
  for (const size of order) {
    const text = fmtSize(size), half = text.length * 3.5 + 4, x = sx(size);
    if (taken.some(t => Math.abs(t[0] - x) < t[1] + half)) continue;
    taken.push([x, half]);
    svg += `<text x="${f(x)}" y="${bottom + 17}" text-anchor="middle">${text}</text>`;
  }
  for (const size of sizes) svg += `<path class="axis" d="M${f(sx(size))} ${bottom}v4"/>`;
  svg += `<path class="axis" d="M${f(left)} ${bottom}H${f(width - right)}"/>`;
  svg += `<text x="${f((left + width - right) / 2)}" y="${height - 5}" text-anchor="middle">bytes a request</text>`;
  if (spec.one && 1 >= low && 1 <= high) svg += `<path class="one" d="M${f(left)} ${f(sy(1))}H${f(width - right)}"/>`;
  let lastLabel = -1e9;
  for (const [series, size] of [...spec.crossings].sort((a, b) => a[1] - b[1])) {
    if (size < spec.from || size > spec.to) continue;
    const x = sx(size), text = `≈ ${fmtAbout(size)}`;
    svg += `<path class="cross l${series}" d="M${f(x)} ${top - 4}V${bottom}"/>`;
    if (x - lastLabel > text.length * 6.5 + 6) {
      svg += `<text class="name f${series}" x="${f(x)}" y="${top - 10}" text-anchor="middle">${text}</text>`;
      lastLabel = x;
    }
  }
  const clip = `clip${draw.count = (draw.count || 0) + 1}`;
  svg += `<clipPath id="${clip}"><rect x="${f(left)}" y="${top - 8}" width="${f(width - left - right)}" height="${f(bottom - top + 16)}"/></clipPath><g clip-path="url(#${clip})">`;
  for (const { series, points } of curves) {
    const banded = points.filter(p => p.low > 0 && p.high > 0);
    if (banded.length > 1) {
      const edge = (list, k) => list.map(p => `${f(sx(p.x))} ${f(sy(p[k]))}`).join('L');
      svg += `<path class="band f${series}" d="M${edge(banded, 'high')}L${edge([...banded].reverse(), 'low')}z"/>`;
    }
  }
  for (const { driver, series, second, points } of curves)
    if (points.length > 1) svg += `<path class="curve l${series}${second ? ' second' : driver === spec.base ? ' base' : ''}" d="M${points.map(p => `${f(sx(p.x))} ${f(sy(p.y))}`).join('L')}"/>`;
  for (const { series, second, points } of curves)
    for (const p of points) if (p.x >= spec.from && p.x <= spec.to) svg += mark(series, +f(sx(p.x)), +f(sy(p.y)), second ? 2.6 : 4, p.row.noisy && !second);
  svg += '</g>';
  if (right > 14) {
    const ends = curves.filter(c => !c.second && c.points.length).map(c => ({ ...c, y: sy(c.points[c.points.length - 1].y) })).sort((a, b) => a.y - b.y);
    ends.forEach((end, i) => { if (i) end.y = Math.max(end.y, ends[i - 1].y + 14); });
    for (const end of ends) svg += `<text class="name f${end.series}" x="${width - right + 6}" y="${f(end.y + 4)}">${esc(short(end.driver))}</text>`;
  }
  plot.innerHTML = `<svg viewBox="0 0 ${width} ${height}" height="${height}" aria-hidden="true">${svg}<g class="at"></g></svg><div class="tip" role="status" hidden></div>`;

  const tip = plot.querySelector('.tip'), at = plot.querySelector('.at');
  let shown = -1;
  const show = index => {
    shown = Math.max(-1, Math.min(sizes.length - 1, index));
    tip.hidden = shown < 0;
    if (shown < 0) { at.innerHTML = ''; return; }
    const size = sizes[shown], x = sx(size);
    const rows = spec.curves.filter(c => !c.second).map(c => {
      const p = c.points.find(p => p.x === size);
      return p ? `<tr><td>${icon(c.series)}${esc(c.driver)}<td>${esc(spec.format(p.y))}<td><i>${esc(spec.more(p.row))}${p.row.noisy ? ', noisy' : ''}</i>` : '';
    }).join('');
    tip.innerHTML = `<b>${fmtSize(size)}${size >= 1024 && size % 1024 === 0 ? 'B' : ' bytes'}</b><table>${rows}</table>`;
    at.innerHTML = `<path class="hair" d="M${f(x)} ${top}V${bottom}"/>` + curves.map(c => {
      const p = c.points.find(p => p.x === size);
      return p ? mark(c.series, +f(sx(p.x)), +f(sy(p.y)), c.second ? 3.6 : 5.5) : '';
    }).join('');
    const room = plot.clientWidth - tip.offsetWidth;
    tip.style.left = `${Math.max(0, Math.min(room, x + 14 + tip.offsetWidth > plot.clientWidth ? x - 14 - tip.offsetWidth : x + 14))}px`;
  };
  const nearest = event => {
    const x = event.clientX - plot.getBoundingClientRect().left;
    return sizes.reduce((best, size, i) => Math.abs(sx(size) - x) < Math.abs(sx(sizes[best]) - x) ? i : best, 0);
  };
  plot.onpointermove = plot.onpointerdown = event => show(nearest(event));
  plot.onpointerleave = plot.onblur = () => show(-1);
  plot.onkeydown = event => {
    const to = { ArrowLeft: shown - 1, ArrowRight: shown + 1, Home: 0, End: sizes.length - 1 }[event.key];
    if (event.key === 'Escape') show(-1);
    else if (to !== undefined) { show(Math.max(0, to)); event.preventDefault(); }
  };
}

function render(section) {
  const rows = read(section), buttons = [...section.querySelectorAll('.legend button')];
  const base = section.dataset.base;
  const shown = buttons.filter(b => b.getAttribute('aria-pressed') === 'true').map(b => [b.textContent.trim(), +b.dataset.series]);
  const series = new Map(shown);
  const curve = (y, ci, second, all = shown) => all.map(([driver, s]) => ({ driver, series: s, second,
    points: rows.filter(r => r.driver === driver).map(r => ({ x: r.size, y: r[y], low: ci && r[ci][0], high: ci && r[ci][1], row: r })) }));
  const sizes = [...new Set(rows.map(r => r.size))].sort((a, b) => a - b);
  const [from, to] = [sizes[0], sizes[sizes.length - 1]];
  const crossings = JSON.parse(section.dataset.crossings).filter(c => series.has(c[0])).map(c => [series.get(c[0]), c[1]]);
  const spread = (of, ci) => r => isNaN(r[ci][0]) ? '' : `± ${digits((r[ci][1] - r[ci][0]) / 2 / r[of] * 100)} %`;
  const throughput = { base, format: fmtRate, more: spread('rate', 'rateCi'), curves: curve('rate', 'rateCi') };
  const charts = [{ ...throughput, title: 'Throughput by size', note: 'Band: 95 % confidence interval. Hollow marks: noisy.' + (crossings.length ? ' Dashed uprights: crossovers.' : ''), names: true, from, to, crossings, height: 340 }];
  if (crossings.length) {
    // Three measured sizes on either side of the crossovers.
    const [first, last] = [Math.min(...crossings.map(c => c[1])), Math.max(...crossings.map(c => c[1]))];
    const below = sizes.filter(s => s <= first).slice(-2), above = sizes.filter(s => s >= last).slice(0, 2);
    charts.push({ ...throughput, title: 'Zoom on the crossover', note: 'The same curves where the faster side changes.', from: below[0] ?? from, to: above[above.length - 1] ?? to, crossings, height: 340 });
  } else if (shown.some(s => s[0] !== base) && base) {
    charts.push({ title: `Times as fast as ${base}`, note: `No crossover. The dotted line is ${base} itself; band: 95 % confidence interval.`, format: fmtTimes, more: spread('times', 'timesCi'),
      curves: curve('times', 'timesCi', false, shown.filter(s => s[0] !== base)), one: true, from, to, crossings, height: 340 });
  }
  charts.push({ base, title: 'Processor load by size', note: 'Whole process, helpers included; 100 % is one core. Dashed, small marks: the part spent in the kernel.', format: fmtLoad, linear: true,
    more: r => `kernel ${fmtLoad(r.kernel)}`, curves: [...curve('kernel', null, true), ...curve('load')], from, to, crossings: [], height: 280 });
  charts.push({ base, title: 'Latency by size', note: 'Solid: median (p50). Dashed, small marks: 99th percentile (p99).', format: fmtTime,
    more: r => `p99 ${fmtTime(r.p99)}`, curves: [...curve('p99', null, true), ...curve('p50')], from, to, crossings: [], height: 280 });
  const box = section.querySelector('.charts');
  box.innerHTML = charts.map(c => `<figure class="chart"><figcaption><b>${esc(c.title)}</b>${esc(c.note)}</figcaption><div class="plot" tabindex="0" role="group" aria-label="${esc(c.title)}: chart. Arrow keys go through the sizes; the table below has all figures."></div></figure>`).join('');
  [...box.children].forEach((figure, i) => draw(figure, charts[i]));
}

const drawn = new Set();
const observer = new IntersectionObserver(entries => {
  for (const { isIntersecting, target } of entries)
    if (isIntersecting && !drawn.has(target)) { drawn.add(target); render(target); }
}, { rootMargin: '600px' });
for (const section of document.querySelectorAll('.case')) {
  for (const button of section.querySelectorAll('.legend button')) {
    button.insertAdjacentHTML('afterbegin', key(button.dataset.series));
    button.onclick = () => {
      button.setAttribute('aria-pressed', button.getAttribute('aria-pressed') !== 'true');
      render(section);
    };
  }
  observer.observe(section);
}
let width = innerWidth, timer;
addEventListener('resize', () => {
  clearTimeout(timer);
  timer = setTimeout(() => { if (width !== innerWidth) { width = innerWidth; drawn.forEach(render); } }, 120);
});
addEventListener('beforeprint', () => document.querySelectorAll('.case').forEach(s => { drawn.add(s); render(s); }));

const theme = document.getElementById('theme'), root = document.documentElement;
const dark = () => root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
const say = () => { theme.textContent = dark() ? 'Light' : 'Dark'; theme.title = `Switch to ${dark() ? 'light' : 'dark'} colours`; };
theme.hidden = false;
theme.onclick = () => { root.dataset.theme = dark() ? 'light' : 'dark'; say(); };
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', say);
say();
})();
