// SPDX-License-Identifier: Apache-2.0
// The plots of a sweep: measured points joined by lines, the closed form dashed over them.

const PLOT = { width: 620, height: 360, left: 78, right: 16, top: 12, bottom: 46 };

function plotScale(values, log, unit, low, high) {
  const usable = values.filter(value => isFinite(value) && (!log || value > 0));
  let min = Math.min(...usable), max = Math.max(...usable);
  if (usable.length === 0) [min, max] = [1, 10];
  if (!log) min = Math.min(min, 0);
  if (min === max) [min, max] = log ? [min / 2, max * 2] : [min, max + 1];
  const map = log ? Math.log : value => value;
  const pad = (map(max) - map(min)) * 0.03;
  const from = map(min) - (log ? pad : 0), to = map(max) + pad;
  const at = value => low + (map(value) - from) / (to - from) * (high - low);
  return { at, ticks: log ? logTicks(min, max, unit) : linearTicks(min, max) };
}

function linearTicks(min, max) {
  const step = niceStep(max - min, 6), ticks = [];
  for (let t = Math.ceil(min / step) * step; t <= max * (1 + 1e-9); t += step) ticks.push(t);
  return ticks;
}

// Powers of two for bytes and where the range is short, powers of ten otherwise; times at 1, 2 and 5 of each power.
function logTicks(min, max, unit) {
  const ticks = [];
  if (unit === 'ps' && max / min <= 1000) {
    for (let e = Math.floor(Math.log10(min)); Math.pow(10, e) <= max; e++)
      for (const digit of [1, 2, 5])
        if (digit * Math.pow(10, e) >= min && digit * Math.pow(10, e) <= max) ticks.push(digit * Math.pow(10, e));
    if (ticks.length > 1) return ticks;
    ticks.length = 0;
  }
  const base = unit === 'bytes' || max / min <= 256 ? 2 : 10;
  let step = 1;
  while (Math.log(max / min) / Math.log(base) / step > 9) step++;
  for (let e = Math.floor(Math.log(min) / Math.log(base) / step) * step; Math.pow(base, e) <= max * 1.0001; e += step)
    if (Math.pow(base, e) >= min * 0.9999) ticks.push(Math.pow(base, e));
  return ticks;
}

// Bytes and times with their unit; other numbers with few digits.
function tickText(value, unit) {
  if (unit === 'bytes') return formatBytes(value).replace(' ', '');
  if (unit === 'ps') return value === 0 ? '0' : formatTime({ unit: 'ps' }, value, 4);
  if (value !== 0 && (Math.abs(value) >= 1e6 || Math.abs(value) < 1e-3)) return value.toExponential(1).replace('.0e', 'e');
  return significant(value, 4);
}

function plotCard(plot) {
  const xs = plot.curves.flatMap(curve => curve.points.filter((_, i) => i % 2 === 0));
  const ys = plot.curves.flatMap(curve => curve.points.filter((_, i) => i % 2 === 1));
  const x = plotScale(xs, plot.xLog, plot.xUnit, PLOT.left, PLOT.width - PLOT.right);
  const y = plotScale(ys, plot.yLog, plot.yUnit, PLOT.height - PLOT.bottom, PLOT.top);
  const measured = plot.curves.filter(curve => !curve.closedForm);
  // A closed form has the colour of its curve.
  const colourOf = curve => {
    const index = measured.indexOf(curve.closedForm ? plot.curves[curve.of] : curve);
    return index < 0 ? 'var(--text)' : 'var(--q' + (index % 8 + 1) + ')';
  };
  const picture = svg('svg', { viewBox: '0 0 ' + PLOT.width + ' ' + PLOT.height, role: 'img', 'aria-label': plot.title });
  const readout = el('div', { class: 'empty', 'aria-live': 'polite' }, 'Point at a mark to read it.');
  for (const t of x.ticks) picture.append(
    svg('line', { class: 'grid', x1: x.at(t), x2: x.at(t), y1: PLOT.top, y2: PLOT.height - PLOT.bottom }),
    svg('text', { x: x.at(t), y: PLOT.height - PLOT.bottom + 18, 'text-anchor': 'middle' }, tickText(t, plot.xUnit)));
  for (const t of y.ticks) picture.append(
    svg('line', { class: 'grid', x1: PLOT.left, x2: PLOT.width - PLOT.right, y1: y.at(t), y2: y.at(t) }),
    svg('text', { x: PLOT.left - 8, y: y.at(t) + 4, 'text-anchor': 'end' }, tickText(t, plot.yUnit)));
  picture.append(svg('polyline', { class: 'axis', fill: 'none',
    points: [[PLOT.left, PLOT.top], [PLOT.left, PLOT.height - PLOT.bottom], [PLOT.width - PLOT.right, PLOT.height - PLOT.bottom]].join(' ') }),
  svg('text', { x: (PLOT.left + PLOT.width - PLOT.right) / 2, y: PLOT.height - 8, 'text-anchor': 'middle' }, plot.x),
  svg('text', { x: 0, y: 0, 'text-anchor': 'middle', transform: 'translate(14 ' + (PLOT.height - PLOT.bottom) / 2 + ') rotate(-90)' }, plot.y));
  for (const curve of plot.curves) paintCurve(picture, plot, curve, x, y, colourOf(curve), readout);
  return el('section', { class: 'card plot' }, el('h2', {}, plot.title), picture,
    el('div', { class: 'legend' }, ...plot.curves.map(curve => el('span', {},
      el('i', { class: 'thin', style: { background: curve.closedForm ? 'repeating-linear-gradient(90deg, ' + colourOf(curve) + ' 0 4px, transparent 4px 6px)' : colourOf(curve) } }), curve.name))),
    readout);
}

function paintCurve(picture, plot, curve, x, y, colour, readout) {
  const points = [];
  for (let i = 0; i + 1 < curve.points.length; i += 2) {
    const [a, b] = [curve.points[i], curve.points[i + 1]];
    if (b === null || a === null || (plot.xLog && a <= 0) || (plot.yLog && b <= 0)) continue;
    points.push([a, b]);
  }
  const line = points.map(([a, b]) => x.at(a).toFixed(2) + ',' + y.at(b).toFixed(2)).join(' ');
  picture.append(svg('polyline', { points: line, fill: 'none', stroke: colour, 'stroke-width': curve.closedForm ? 1.5 : 2,
    'stroke-dasharray': curve.closedForm ? '5 4' : null, 'stroke-linejoin': 'round' }));
  if (curve.closedForm) return;
  for (const [a, b] of points) {
    const say = () => { readout.textContent = curve.name + ': ' + tickText(a, plot.xUnit) + ' → ' + tickText(b, plot.yUnit); };
    picture.append(svg('circle', { cx: x.at(a), cy: y.at(b), r: 4, fill: colour, stroke: 'var(--panel)', 'stroke-width': 1.5, tabindex: 0,
      role: 'img', 'aria-label': curve.name + ' ' + a + ' ' + b, onpointerenter: say, onfocus: say }));
  }
}
