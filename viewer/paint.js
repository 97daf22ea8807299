// SPDX-License-Identifier: Apache-2.0
// Draws the diagram: what is visible and nothing else. Bars are found by binary search, and bars of one track that fall
// into the same pixel column are drawn once.

const MOST_ARROWS = 1500;     // more than this many at once are thinned out,
const THIN_ARROWS = 500;      // to about this many

function paintDiagram(diagram) {
  const { context: c, width, height } = fitCanvas(diagram.canvas);
  if (width < 20 || height < 20) return;
  diagram.size = { width, height };
  diagram.clamp();
  const colours = diagram.colours;
  c.clearRect(0, 0, width, height);
  const rowHeight = diagram.rowHeight();
  const firstRow = Math.max(0, Math.floor(diagram.view.top / rowHeight));
  const lastRow = Math.min(diagram.rows.length, Math.ceil((diagram.view.top + height - AXIS) / rowHeight));
  paintRows(diagram, c, colours, firstRow, lastRow, width);
  paintAxis(diagram, c, colours, width, height);
  c.save();
  c.beginPath();
  c.rect(diagram.gutter(), AXIS, width - diagram.gutter(), height - AXIS);
  c.clip();
  paintBars(diagram, c, colours, firstRow, lastRow, width);
  if (diagram.showArrows) paintArrows(diagram, c, colours, firstRow, lastRow);
  else diagram.drawnArrows = [];
  if (diagram.showPath && diagram.model.path.length) paintPath(diagram, c, colours);
  paintSelection(diagram, c, colours);
  if (diagram.cursor >= 0) paintCursor(diagram, c, colours, height);
  c.restore();
  paintScrollbar(diagram, c, colours, width, height);
}

function paintRows(diagram, c, colours, firstRow, lastRow, width) {
  const height = diagram.rowHeight(), gutter = diagram.gutter();
  c.font = diagram.font(12);
  c.textBaseline = 'middle';
  c.textAlign = 'right';
  const every = Math.ceil(15 / height);
  for (let row = firstRow; row < lastRow; row++) {
    const y = diagram.yOf(row);
    if (height >= 8) {
      c.fillStyle = colours.faint;
      c.fillRect(gutter, Math.round(y + height) - 1, width - gutter, 1);
    }
    if (row % every !== 0 || y + height / 2 < AXIS) continue;
    c.fillStyle = diagram.selected >= 0 && diagram.rowOf[diagram.model.bars.track[diagram.selected]] === row ? colours.accent : colours.muted;
    c.fillText(shorten(diagram, c, diagram.trackLabel(diagram.rows[row]), gutter - 14), gutter - 9, Math.max(y + (every > 1 ? 7 : height / 2), AXIS + 7));
  }
}

function paintAxis(diagram, c, colours, width, height) {
  const { view, model } = diagram, gutter = diagram.gutter();
  const step = Math.max(model.unit === 'steps' ? 1 : 1e-9, niceStep(view.to - view.from, diagram.plotWidth() / 92));
  c.font = diagram.font(11.5);
  c.textAlign = 'center';
  c.textBaseline = 'middle';
  const steps = model.unit === 'steps'; // a step's number stands over its bar, not at its end
  for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
    const x = Math.round(diagram.xOf(t)) + 0.5;
    c.strokeStyle = colours.faint;
    c.beginPath();
    c.moveTo(x, AXIS);
    c.lineTo(x, height);
    c.stroke();
    c.fillStyle = colours.muted;
    if (steps) {
      if (t >= 1 && t <= model.end && diagram.xOf(t - 0.5) > gutter) c.fillText(formatCount(t), diagram.xOf(t - 0.5), AXIS / 2);
      continue;
    }
    c.textAlign = x - gutter < 30 ? 'left' : x > width - 34 ? 'right' : 'center';
    c.fillText(t === 0 ? '0' : formatTime(model, t, 6), x, AXIS / 2);
  }
  c.strokeStyle = colours.line;
  c.beginPath();
  c.moveTo(0, AXIS - 0.5);
  c.lineTo(width, AXIS - 0.5);
  c.stroke();
}

// Rectangles are gathered by colour, so that the fill style changes a dozen times per frame and not once per bar.
function paintBars(diagram, c, colours, firstRow, lastRow, width) {
  const { bars } = diagram.model, { view } = diagram;
  const lists = colours.category.map(() => []), faded = colours.category.map(() => []);
  const joined = colours.category.map(() => []), bad = [], texts = [];
  const scale = diagram.plotWidth() / (view.to - view.from), left = diagram.gutter() - view.from * scale;
  const height = diagram.rowHeight(), inset = height >= 14 ? 3 : height >= 7 ? 1 : height >= 4 ? 0.5 : 0;
  const barHeight = Math.max(1, height - 2 * inset);
  for (let row = firstRow; row < lastRow; row++) {
    const track = diagram.rows[row], end = bars.first[track + 1], y = diagram.yOf(row) + inset;
    let i = firstAbove(bars.reach, view.from, bars.first[track], end);
    while (i < end && bars.start[i] <= view.to) {
      const x = left + bars.start[i] * scale;
      let w = (bars.end[i] - bars.start[i]) * scale;
      const dim = (diagram.matches && !diagram.matches[bars.label[i]]) || (diagram.cursor >= 0 && bars.start[i] >= diagram.cursor);
      if (w < 1) {
        // A pixel column shows its first bar, or a red one; the rest of the column is skipped by search. A bar that
        // begins in this column and ends beyond it is not skipped.
        const edge = (x + 1 - left) / scale;
        const next = firstAbove(bars.start, edge, i + 1, Math.min(end, i + 4096));
        let flags = bars.flags[i], long = i + 1;
        while (long < next && bars.end[long] <= edge) flags |= bars.flags[long++];
        (flags & FLAG_BAD ? bad : (dim ? faded : lists)[bars.category[i]]).push(x, y, 1, barHeight);
        i = long;
        continue;
      }
      const from = Math.max(x, -2), to = Math.min(x + w, width + 2);
      w = Math.max(1, to - from - (w > 4 ? 1 : 0));
      (bars.flags[i] & FLAG_BAD ? bad : (dim ? faded : bars.joined[i] ? joined : lists)[bars.category[i]]).push(from, y, w, barHeight);
      if (w > 26 && barHeight > 10) texts.push(i, Math.max(from, diagram.gutter()), y, Math.min(w, to - diagram.gutter()), dim ? 1 : 0);
      i++;
    }
  }
  const radius = barHeight > 12 ? 3 : 0;
  if (height < 7) {
    rasterAll(c, diagram.size, [...lists.map((list, k) => [colours.category[k], 1, list]),
      ...joined.map((list, k) => [colours.category[k], 0.6, list]), ...faded.map((list, k) => [colours.category[k], 0.22, list]), [colours.bad, 1, bad]]);
    return;
  }
  lists.forEach((list, k) => fillAll(c, colours.category[k], list, radius));
  c.globalAlpha = 0.6; // joined bars are paler: they may have gaps, and other ops in them
  joined.forEach((list, k) => fillAll(c, colours.category[k], list, radius));
  c.globalAlpha = 0.22;
  faded.forEach((list, k) => fillAll(c, colours.category[k], list, radius));
  c.globalAlpha = 1;
  fillAll(c, colours.bad, bad, radius);
  paintTexts(diagram, c, colours, texts, barHeight);
}

function paintTexts(diagram, c, colours, texts, barHeight) {
  const { bars, texts: strings, categories } = diagram.model;
  c.font = diagram.font(Math.min(12, Math.max(9, barHeight - 4)));
  c.textAlign = 'left';
  c.textBaseline = 'middle';
  for (let k = 0; k < texts.length; k += 5) {
    const bar = texts[k], width = texts[k + 3] - 8;
    const text = bars.joined[bar] ? formatCount(bars.joined[bar] + 1) + ' ops' : strings[bars.label[bar]];
    const isWait = categories[bars.category[bar]] === 'wait' && !(bars.flags[bar] & FLAG_BAD);
    c.fillStyle = texts[k + 4] || isWait ? colours.muted : colours['on-bar'];
    const short = shorten(diagram, c, text, width), middle = texts[k + 2] + barHeight / 2 + 0.5;
    const cut = text.indexOf(' ');
    if (short === text || !/^[a-z_]+ /.test(text) || barHeight < 30) {
      c.fillText(short, texts[k + 1] + 4, middle);
    } else { // the verb above, its operands below
      c.fillText(shorten(diagram, c, text.slice(0, cut), width), texts[k + 1] + 4, middle - 7.5);
      c.fillText(shorten(diagram, c, text.slice(cut + 1), width), texts[k + 1] + 4, middle + 7.5);
    }
  }
}

function paintArrows(diagram, c, colours, firstRow, lastRow) {
  const { arrows } = diagram.model, { view } = diagram;
  const visible = [];
  for (let i = firstAbove(arrows.reach, view.from, 0, arrows.count); i < arrows.count && arrows.from[i] <= view.to; i++) {
    const a = diagram.rowOf[arrows.fromTrack[i]], b = diagram.rowOf[arrows.toTrack[i]];
    if (a < 0 || b < 0 || arrows.to[i] < view.from) continue;
    if (Math.max(a, b) >= firstRow && Math.min(a, b) < lastRow) visible.push(i);
  }
  const every = visible.length > MOST_ARROWS ? Math.ceil(visible.length / THIN_ARROWS) : 1;
  diagram.arrowsThinned = every > 1 ? every : 0;
  diagram.drawnArrows = every > 1 ? visible.filter(i => i % every === 0 || arrows.flags[i] & FLAG_BAD) : visible;
  if (every > 1) return paintThinArrows(diagram, c, colours);
  const head = Math.min(6, diagram.rowHeight() / 2);
  for (const i of diagram.drawnArrows) {
    const [x1, y1, x2, y2] = diagram.arrowLine(i);
    const future = diagram.cursor >= 0 && arrows.to[i] >= diagram.cursor;
    c.globalAlpha = future ? 0.15 : diagram.hovered && diagram.hovered.arrow === i ? 1 : 0.8;
    c.strokeStyle = c.fillStyle = arrows.flags[i] & FLAG_BAD ? colours.bad : colours.category[arrows.category[i]];
    c.lineWidth = diagram.hovered && diagram.hovered.arrow === i ? 2.5 : 1.25;
    c.beginPath();
    c.moveTo(x1, y1);
    c.lineTo(x2, y2);
    c.stroke();
    if (head < 3) continue;
    const angle = Math.atan2(y2 - y1, x2 - x1);
    c.beginPath();
    c.moveTo(x2, y2);
    c.lineTo(x2 - head * 1.5 * Math.cos(angle - 0.38), y2 - head * 1.5 * Math.sin(angle - 0.38));
    c.lineTo(x2 - head * 1.5 * Math.cos(angle + 0.38), y2 - head * 1.5 * Math.sin(angle + 0.38));
    c.fill();
    c.beginPath();
    c.arc(x1, y1, head / 2.4, 0, 7);
    c.fill();
  }
  c.globalAlpha = 1;
  c.lineWidth = 1;
}

// Too many to distinguish: plain lines, one stroke per colour.
function paintThinArrows(diagram, c, colours) {
  const { arrows } = diagram.model;
  const byColour = new Map();
  for (const i of diagram.drawnArrows) {
    const colour = arrows.flags[i] & FLAG_BAD ? colours.bad : colours.category[arrows.category[i]];
    if (!byColour.has(colour)) byColour.set(colour, new Path2D());
    const [x1, y1, x2, y2] = diagram.arrowLine(i);
    byColour.get(colour).moveTo(x1, y1);
    byColour.get(colour).lineTo(x2, y2);
  }
  c.globalAlpha = 0.4;
  for (const [colour, lines] of byColour) {
    c.strokeStyle = colour;
    c.stroke(lines);
  }
  c.globalAlpha = 1;
}

function paintSelection(diagram, c, colours) {
  const { bars } = diagram.model;
  const outline = (bar, colour, width) => {
    const row = diagram.rowOf[bars.track[bar]];
    if (row < 0) return;
    const x = diagram.xOf(bars.start[bar]);
    c.strokeStyle = colour;
    c.lineWidth = width;
    c.strokeRect(x - 0.5, diagram.yOf(row) + 1.5, Math.max(2, diagram.xOf(bars.end[bar]) - x), Math.max(3, diagram.rowHeight() - 3));
  };
  if (diagram.hovered && diagram.hovered.bar !== undefined) outline(diagram.hovered.bar, colours.muted, 1.5);
  if (diagram.selected >= 0) outline(diagram.selected, colours.text, 2);
  c.lineWidth = 1;
}

function paintCursor(diagram, c, colours, height) {
  const x = Math.round(diagram.xOf(diagram.cursor)) + 0.5;
  c.strokeStyle = colours.accent;
  c.lineWidth = 2;
  c.beginPath();
  c.moveTo(x, AXIS);
  c.lineTo(x, height);
  c.stroke();
  c.lineWidth = 1;
}

function paintScrollbar(diagram, c, colours, width, height) {
  const total = diagram.rows.length * diagram.rowHeight(), room = height - AXIS - 6;
  if (total <= room + 1) return;
  c.fillStyle = colours.muted;
  c.globalAlpha = 0.5;
  c.fillRect(width - 6, AXIS + diagram.view.top / total * room, 4, Math.max(16, room / total * room));
  c.globalAlpha = 1;
}

// The text, shortened to a width. A mean character width says where to start, so that few texts need measuring.
function shorten(diagram, c, text, width) {
  if (diagram.measuredFont !== c.font) {
    diagram.measuredFont = c.font;
    diagram.charWidth = c.measureText('notify compute slot 0123 [part] += 1').width / 35;
  }
  if (text.length * diagram.charWidth < width * 0.7) return text;
  let most = Math.min(text.length, Math.ceil(width / diagram.charWidth) + 4);
  let short = text.slice(0, most);
  while (most > 1 && c.measureText(short).width > width) short = text.slice(0, --most - 1) + '…';
  return most > 3 || short === text ? short : ''; // one or two letters say nothing
}

// Thin rows have tens of thousands of tiny rectangles in view: written as pixels, they cost a tenth of fillRect.
function rasterAll(c, size, lists) {
  const ratio = window.devicePixelRatio || 1;
  const width = Math.round(size.width * ratio), height = Math.round(size.height * ratio);
  const { scratch } = rasterAll;
  if (scratch.canvas.width !== width || scratch.canvas.height !== height || !scratch.image) {
    scratch.canvas.width = width;
    scratch.canvas.height = height;
    scratch.image = scratch.canvas.getContext('2d').createImageData(width, height);
  }
  const pixels = new Uint32Array(scratch.image.data.buffer);
  pixels.fill(0);
  for (const [colour, alpha, list] of lists) {
    const [r, g, b] = [1, 3, 5].map(i => parseInt(colour.slice(i, i + 2), 16));
    const value = ((Math.round(alpha * 255) << 24) | (b << 16) | (g << 8) | r) >>> 0;
    for (let i = 0; i < list.length; i += 4) {
      const x0 = Math.max(0, Math.round(list[i] * ratio)), x1 = Math.min(width, Math.max(x0 + 1, Math.round((list[i] + list[i + 2]) * ratio)));
      const y0 = Math.max(0, Math.round(list[i + 1] * ratio)), y1 = Math.min(height, Math.round((list[i + 1] + list[i + 3]) * ratio));
      for (let y = y0; y < y1; y++) pixels.fill(value, y * width + x0, y * width + x1);
    }
  }
  scratch.canvas.getContext('2d').putImageData(scratch.image, 0, 0);
  c.drawImage(scratch.canvas, 0, 0, size.width, size.height);
}
rasterAll.scratch = { canvas: document.createElement('canvas'), image: null };

function fillAll(c, colour, list, radius) {
  if (list.length === 0) return;
  c.fillStyle = colour;
  if (radius && list.length < 16000) {
    c.beginPath();
    for (let i = 0; i < list.length; i += 4) {
      if (list[i + 2] > 6) c.roundRect(list[i], list[i + 1], list[i + 2], list[i + 3], radius);
      else c.rect(list[i], list[i + 1], list[i + 2], list[i + 3]);
    }
    c.fill();
    return;
  }
  for (let i = 0; i < list.length; i += 4) c.fillRect(list[i], list[i + 1], list[i + 2], list[i + 3]);
}
