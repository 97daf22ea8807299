// SPDX-License-Identifier: Apache-2.0
// The space-time diagram: time across, tracks down, bars and arrows. Draws what is visible and nothing else: bars are
// found by binary search, and bars of one track that fall into the same pixel column are drawn once.

const AXIS = 26;              // height of the time axis
const MOST_ARROWS = 1500;     // more than this many at once are thinned out,
const THIN_ARROWS = 500;      // to about so many
const MOST_ROW = 46, LEAST_ROW = 3;

class Diagram {
  constructor(model, canvas) {
    this.model = model;
    this.canvas = canvas;
    this.view = { from: 0, to: model.end, top: 0, row: 0 };
    this.rows = [];                              // visible tracks, in order
    this.rowOf = new Int32Array(model.tracks.count);
    this.selected = -1;                          // a bar
    this.hovered = null;                         // {bar} or {arrow}
    this.matches = null;                         // labels that the search found: a Uint8Array over texts
    this.showArrows = true;
    this.showPath = true;
    this.cursor = -1;                            // steps done, in a counterexample
    this.onSelect = () => {};
    this.onView = () => {};
    this.frame = 0;
    this.onHover = () => {};
    this.groups = new Set(); // texts of the groups that are switched on
    this.filter(() => true);
    this.listen();
  }

  // Rows.

  // Tracks of ranks that are accepted; groups other than the ranks' own (engines, links) only while they are switched on.
  filter(accepts = this.accepts) {
    const { tracks } = this.model;
    this.accepts = accepts;
    this.rows = [];
    this.rowOf.fill(-1);
    for (let t = 0; t < tracks.count; t++) {
      if (tracks.rank[t] >= 0 && !accepts(tracks.rank[t])) continue;
      if (tracks.group[t] && !this.groups.has(tracks.group[t])) continue;
      this.rowOf[t] = this.rows.length;
      this.rows.push(t);
    }
    this.view.row = 0; // fit again
    this.view.top = 0;
    this.gutterWidth = 0; // measured again for these rows
    this.canvas.parentElement.style.setProperty('--rows', this.rows.length * MOST_ROW + AXIS + 12 + 'px');
    this.draw();
    this.onView();
  }

  rowHeight() {
    if (!this.view.row) {
      const room = this.canvas.clientHeight - AXIS - 6;
      this.view.row = Math.max(LEAST_ROW, Math.min(MOST_ROW, room / Math.max(1, this.rows.length)));
    }
    return this.view.row;
  }

  scaleRows(factor) {
    this.view.row = Math.max(LEAST_ROW, Math.min(MOST_ROW, this.rowHeight() * factor));
    this.clamp();
    this.draw();
  }

  // Coordinates.

  gutter() {
    if (!this.gutterWidth) {
      const { context } = fitCanvas(this.canvas);
      context.font = this.font(12);
      let width = 30;
      const step = Math.ceil(this.rows.length / 500);
      for (let row = 0; row < this.rows.length; row += step)
        width = Math.max(width, context.measureText(this.trackLabel(this.rows[row])).width);
      this.gutterWidth = Math.min(180, Math.ceil(width) + 18);
    }
    return this.gutterWidth;
  }

  // The text, cut to a width. A mean character width tells where to start, so that few texts need measuring.
  shorten(c, text, width) {
    if (this.measuredFont !== c.font) {
      this.measuredFont = c.font;
      this.charWidth = c.measureText('notify compute slot 0123 [part] += 1').width / 35;
    }
    if (text.length * this.charWidth < width * 0.7) return text;
    let most = Math.min(text.length, Math.ceil(width / this.charWidth) + 4);
    let short = text.slice(0, most);
    while (most > 1 && c.measureText(short).width > width) short = text.slice(0, --most - 1) + '…';
    return most > 3 || short === text ? short : ''; // a letter or two say nothing
  }

  trackLabel(track) { return this.model.texts[this.model.tracks.label[track]]; }
  font(size, weight = '') { return weight + ' ' + size + 'px system-ui, "DejaVu Sans", "Liberation Sans", sans-serif'; }
  // The canvas' width is asked for once a frame: asking the browser costs more than anything else here.
  plotWidth() { return Math.max(10, (this.size ? this.size.width : this.canvas.clientWidth) - this.gutter() - 10); }
  xOf(time) { return this.gutter() + (time - this.view.from) / (this.view.to - this.view.from) * this.plotWidth(); }
  timeOf(x) { return this.view.from + (x - this.gutter()) / this.plotWidth() * (this.view.to - this.view.from); }
  yOf(row) { return AXIS + row * this.rowHeight() - this.view.top; }

  // View.

  clamp() {
    const { view, model } = this;
    const least = model.unit === 'steps' ? 1.5 : 4;
    const margin = model.end * 0.02;
    let span = Math.min(model.end + margin, Math.max(least, view.to - view.from));
    let from = Math.max(0, Math.min(view.from, model.end + margin - span));
    view.from = from;
    view.to = from + span;
    const room = this.canvas.clientHeight - AXIS - 6;
    view.top = Math.max(0, Math.min(view.top, this.rows.length * this.rowHeight() - room));
  }

  setView(from, to) {
    this.view.from = from;
    this.view.to = to;
    this.clamp();
    this.draw();
    this.onView();
  }

  fit() {
    this.view.row = 0;
    this.view.top = 0;
    this.setView(0, this.model.end * 1.02);
  }

  zoom(factor, x) {
    const at = this.timeOf(x === undefined ? this.gutter() + this.plotWidth() / 2 : Math.max(x, this.gutter()));
    this.setView(at - (at - this.view.from) * factor, at + (this.view.to - at) * factor);
  }

  pan(share) {
    const shift = (this.view.to - this.view.from) * share;
    this.setView(this.view.from + shift, this.view.to + shift);
  }

  scroll(pixels) {
    this.view.top += pixels;
    this.clamp();
    this.draw();
  }

  // Moves as little as needed to have the bar's time and row on the screen.
  reveal(from, to, track) {
    const { view } = this;
    let span = view.to - view.from;
    if (to - from > span) span = (to - from) * 1.3;
    else if (isSmall(to - from, span)) span = Math.max((to - from) * 60, span / 1e6);
    const inside = from >= view.from && to <= view.from + span && span === view.to - view.from;
    if (!inside) {
      const middle = (from + to) / 2;
      view.from = middle - span / 2;
      view.to = middle + span / 2;
    }
    const row = this.rowOf[track], height = this.rowHeight();
    if (row >= 0) {
      const room = this.canvas.clientHeight - AXIS - 6;
      if (row * height < view.top) view.top = row * height;
      if ((row + 1) * height > view.top + room) view.top = (row + 1) * height - room;
    }
    this.clamp();
    this.draw();
    this.onView();
  }

  select(bar, reveal) {
    this.selected = bar;
    if (bar >= 0 && reveal) this.reveal(this.model.bars.start[bar], this.model.bars.end[bar], this.model.bars.track[bar]);
    this.draw();
    this.onSelect(bar);
  }

  // The next or previous bar of the same track, or the bar at the same time on a neighbouring row.
  step(direction) {
    const { bars } = this.model;
    if (this.selected < 0) return this.select(this.barNear(this.rows[0], this.view.from), true);
    const next = this.selected + direction;
    const track = bars.track[this.selected];
    if (next >= bars.first[track] && next < bars.first[track + 1]) this.select(next, true);
  }

  stepRow(direction) {
    const { bars } = this.model;
    if (this.selected < 0) return this.step(1);
    for (let row = this.rowOf[bars.track[this.selected]] + direction; row >= 0 && row < this.rows.length; row += direction) {
      const bar = this.barNear(this.rows[row], bars.start[this.selected]);
      if (bar >= 0) return this.select(bar, true);
    }
  }

  barNear(track, time) {
    const { bars } = this.model;
    const first = bars.first[track], end = bars.first[track + 1];
    if (first === end) return -1;
    return Math.min(end - 1, firstAbove(bars.reach, time, first, end));
  }

  // What is under a point.

  hit(x, y) {
    const { bars, arrows } = this.model;
    if (x < this.gutter() || y < AXIS) return null;
    const row = Math.floor((y - AXIS + this.view.top) / this.rowHeight());
    const track = this.rows[row];
    if (this.showArrows) {
      const arrow = this.arrowNear(x, y);
      if (arrow >= 0) return { arrow };
    }
    if (track === undefined) return null;
    const slack = (this.view.to - this.view.from) / this.plotWidth() * 2;
    const time = this.timeOf(x), end = bars.first[track + 1];
    let best = -1;
    for (let i = firstAbove(bars.reach, time - slack, bars.first[track], end); i < end && bars.start[i] <= time + slack; i++)
      if (bars.end[i] >= time - slack && (best < 0 || bars.start[i] <= time)) best = i;
    return best < 0 ? null : { bar: best };
  }

  arrowNear(x, y) {
    const drawn = this.drawnArrows || [];
    if (drawn.length > 600) return -1;
    for (const i of drawn) {
      const [x1, y1, x2, y2] = this.arrowLine(i);
      const dx = x2 - x1, dy = y2 - y1, length = dx * dx + dy * dy;
      if (length < 64) continue;
      const t = Math.max(0, Math.min(1, ((x - x1) * dx + (y - y1) * dy) / length));
      if (t > 0.02 && Math.hypot(x - x1 - t * dx, y - y1 - t * dy) < 3.5) return i;
    }
    return -1;
  }

  // Drawing.

  draw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }

  paint() {
    const { context: c, width, height } = fitCanvas(this.canvas);
    if (width < 20 || height < 20) return;
    this.size = { width, height };
    this.clamp();
    const colours = this.colours;
    c.clearRect(0, 0, width, height);
    const rowHeight = this.rowHeight();
    const firstRow = Math.max(0, Math.floor(this.view.top / rowHeight));
    const lastRow = Math.min(this.rows.length, Math.ceil((this.view.top + height - AXIS) / rowHeight));
    this.paintRows(c, colours, firstRow, lastRow, width);
    this.paintAxis(c, colours, width, height);
    c.save();
    c.beginPath();
    c.rect(this.gutter(), AXIS, width - this.gutter(), height - AXIS);
    c.clip();
    this.paintBars(c, colours, firstRow, lastRow, width);
    if (this.showArrows) this.paintArrows(c, colours, firstRow, lastRow);
    else this.drawnArrows = [];
    if (this.showPath && this.model.path.length) paintPath(this, c, colours);
    this.paintSelection(c, colours);
    if (this.cursor >= 0) this.paintCursor(c, colours, height);
    c.restore();
    this.paintScrollbar(c, colours, width, height);
  }

  paintRows(c, colours, firstRow, lastRow, width) {
    const height = this.rowHeight(), gutter = this.gutter();
    c.font = this.font(12);
    c.textBaseline = 'middle';
    c.textAlign = 'right';
    const every = Math.ceil(15 / height);
    for (let row = firstRow; row < lastRow; row++) {
      const y = this.yOf(row);
      if (height >= 8) {
        c.fillStyle = colours.faint;
        c.fillRect(gutter, Math.round(y + height) - 1, width - gutter, 1);
      }
      if (row % every !== 0 || y + height / 2 < AXIS) continue;
      c.fillStyle = this.selected >= 0 && this.rowOf[this.model.bars.track[this.selected]] === row ? colours.accent : colours.muted;
      c.fillText(this.shorten(c, this.trackLabel(this.rows[row]), gutter - 14), gutter - 9, Math.max(y + (every > 1 ? 7 : height / 2), AXIS + 7));
    }
  }

  paintAxis(c, colours, width, height) {
    const { view, model } = this, gutter = this.gutter();
    const step = Math.max(model.unit === 'steps' ? 1 : 1e-9, niceStep(view.to - view.from, this.plotWidth() / 92));
    c.font = this.font(11.5);
    c.textAlign = 'center';
    c.textBaseline = 'middle';
    const steps = model.unit === 'steps'; // a step's number stands over its bar, not at its end
    for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
      const x = Math.round(this.xOf(t)) + 0.5;
      c.strokeStyle = colours.faint;
      c.beginPath();
      c.moveTo(x, AXIS);
      c.lineTo(x, height);
      c.stroke();
      c.fillStyle = colours.muted;
      if (steps) {
        if (t >= 1 && t <= model.end && this.xOf(t - 0.5) > gutter) c.fillText(formatCount(t), this.xOf(t - 0.5), AXIS / 2);
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

  // Rectangles are gathered by colour, so that the fill style changes a dozen times a frame and not once a bar.
  paintBars(c, colours, firstRow, lastRow, width) {
    const { bars } = this.model, { view } = this;
    const lists = colours.category.map(() => []), faded = colours.category.map(() => []);
    const joined = colours.category.map(() => []), bad = [], texts = [];
    const scale = this.plotWidth() / (view.to - view.from), left = this.gutter() - view.from * scale;
    const height = this.rowHeight(), inset = height >= 14 ? 3 : height >= 7 ? 1 : height >= 4 ? 0.5 : 0;
    const barHeight = Math.max(1, height - 2 * inset);
    for (let row = firstRow; row < lastRow; row++) {
      const track = this.rows[row], end = bars.first[track + 1], y = this.yOf(row) + inset;
      let i = firstAbove(bars.reach, view.from, bars.first[track], end);
      while (i < end && bars.start[i] <= view.to) {
        const x = left + bars.start[i] * scale;
        let w = (bars.end[i] - bars.start[i]) * scale;
        const dim = (this.matches && !this.matches[bars.label[i]]) || (this.cursor >= 0 && bars.start[i] >= this.cursor);
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
        if (w > 26 && barHeight > 10) texts.push(i, Math.max(from, this.gutter()), y, Math.min(w, to - this.gutter()), dim ? 1 : 0);
        i++;
      }
    }
    const radius = barHeight > 12 ? 3 : 0;
    if (height < 7) {
      rasterAll(c, this.size, [...lists.map((list, k) => [colours.category[k], 1, list]),
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
    this.paintTexts(c, colours, texts, barHeight);
  }

  paintTexts(c, colours, texts, barHeight) {
    const { bars, texts: strings, categories } = this.model;
    c.font = this.font(Math.min(12, Math.max(9, barHeight - 4)));
    c.textAlign = 'left';
    c.textBaseline = 'middle';
    for (let k = 0; k < texts.length; k += 5) {
      const bar = texts[k], width = texts[k + 3] - 8;
      const text = bars.joined[bar] ? formatCount(bars.joined[bar] + 1) + ' ops' : strings[bars.label[bar]];
      const isWait = categories[bars.category[bar]] === 'wait' && !(bars.flags[bar] & FLAG_BAD);
      c.fillStyle = texts[k + 4] || isWait ? colours.muted : colours['on-bar'];
      const short = this.shorten(c, text, width), middle = texts[k + 2] + barHeight / 2 + 0.5;
      const cut = text.indexOf(' ');
      if (short === text || !/^[a-z_]+ /.test(text) || barHeight < 30) {
        c.fillText(short, texts[k + 1] + 4, middle);
      } else { // the verb above, its operands below
        c.fillText(this.shorten(c, text.slice(0, cut), width), texts[k + 1] + 4, middle - 7.5);
        c.fillText(this.shorten(c, text.slice(cut + 1), width), texts[k + 1] + 4, middle + 7.5);
      }
    }
  }

  arrowLine(i) {
    // From near the edge of one bar to near that of the other, so that little text is crossed; steps have room to be slanted.
    const { arrows } = this.model, half = this.rowHeight() / 2, slant = this.model.unit === 'steps' ? 0.22 : 0;
    const from = this.rowOf[arrows.fromTrack[i]], to = this.rowOf[arrows.toTrack[i]];
    const reach = half < 7 ? 0 : half * 0.5 * Math.sign(to - from);
    return [this.xOf(arrows.from[i] - slant), this.yOf(from) + half + reach, this.xOf(arrows.to[i] + slant), this.yOf(to) + half - reach];
  }

  paintArrows(c, colours, firstRow, lastRow) {
    const { arrows } = this.model, { view } = this;
    const visible = [];
    for (let i = firstAbove(arrows.reach, view.from, 0, arrows.count); i < arrows.count && arrows.from[i] <= view.to; i++) {
      const a = this.rowOf[arrows.fromTrack[i]], b = this.rowOf[arrows.toTrack[i]];
      if (a < 0 || b < 0 || arrows.to[i] < view.from) continue;
      if (Math.max(a, b) >= firstRow && Math.min(a, b) < lastRow) visible.push(i);
    }
    const every = visible.length > MOST_ARROWS ? Math.ceil(visible.length / THIN_ARROWS) : 1;
    this.arrowsThinned = every > 1 ? every : 0;
    this.drawnArrows = every > 1 ? visible.filter(i => i % every === 0 || arrows.flags[i] & FLAG_BAD) : visible;
    if (every > 1) return this.paintThinArrows(c, colours);
    const head = Math.min(6, this.rowHeight() / 2);
    for (const i of this.drawnArrows) {
      const [x1, y1, x2, y2] = this.arrowLine(i);
      const future = this.cursor >= 0 && arrows.to[i] >= this.cursor;
      c.globalAlpha = future ? 0.15 : this.hovered && this.hovered.arrow === i ? 1 : 0.8;
      c.strokeStyle = c.fillStyle = arrows.flags[i] & FLAG_BAD ? colours.bad : colours.category[arrows.category[i]];
      c.lineWidth = this.hovered && this.hovered.arrow === i ? 2.5 : 1.25;
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

  // Too many to tell apart: plain lines, one stroke a colour.
  paintThinArrows(c, colours) {
    const { arrows } = this.model;
    const byColour = new Map();
    for (const i of this.drawnArrows) {
      const colour = arrows.flags[i] & FLAG_BAD ? colours.bad : colours.category[arrows.category[i]];
      if (!byColour.has(colour)) byColour.set(colour, new Path2D());
      const [x1, y1, x2, y2] = this.arrowLine(i);
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

  paintSelection(c, colours) {
    const { bars } = this.model;
    const outline = (bar, colour, width) => {
      const row = this.rowOf[bars.track[bar]];
      if (row < 0) return;
      const x = this.xOf(bars.start[bar]);
      c.strokeStyle = colour;
      c.lineWidth = width;
      c.strokeRect(x - 0.5, this.yOf(row) + 1.5, Math.max(2, this.xOf(bars.end[bar]) - x), Math.max(3, this.rowHeight() - 3));
    };
    if (this.hovered && this.hovered.bar !== undefined) outline(this.hovered.bar, colours.muted, 1.5);
    if (this.selected >= 0) outline(this.selected, colours.text, 2);
    c.lineWidth = 1;
  }

  paintCursor(c, colours, height) {
    const x = Math.round(this.xOf(this.cursor)) + 0.5;
    c.strokeStyle = colours.accent;
    c.lineWidth = 2;
    c.beginPath();
    c.moveTo(x, AXIS);
    c.lineTo(x, height);
    c.stroke();
    c.lineWidth = 1;
  }

  paintScrollbar(c, colours, width, height) {
    const total = this.rows.length * this.rowHeight(), room = height - AXIS - 6;
    if (total <= room + 1) return;
    c.fillStyle = colours.muted;
    c.globalAlpha = 0.5;
    c.fillRect(width - 6, AXIS + this.view.top / total * room, 4, Math.max(16, room / total * room));
    c.globalAlpha = 1;
  }

  // Mouse, touch and wheel.

  listen() {
    const { canvas } = this;
    let drag = null;
    canvas.addEventListener('wheel', event => {
      event.preventDefault();
      const [x] = pointIn(canvas, event);
      const unit = event.deltaMode === 1 ? 18 : 1;
      if (event.shiftKey || x < this.gutter()) return this.scroll((event.deltaY || event.deltaX) * unit);
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) return this.pan(event.deltaX * unit / this.plotWidth());
      this.zoom(Math.exp(event.deltaY * unit * 0.0016), x);
    }, { passive: false });
    canvas.addEventListener('pointerdown', event => {
      if (event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      drag = { x: event.clientX, y: event.clientY, from: this.view.from, to: this.view.to, top: this.view.top, moved: false };
    });
    canvas.addEventListener('pointermove', event => {
      const [x, y] = pointIn(canvas, event);
      if (!drag) return this.hover(x, y);
      const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
      if (!drag.moved && Math.hypot(dx, dy) < 4) return;
      drag.moved = true;
      canvas.classList.add('dragging');
      this.hover(-1, -1);
      const shift = -dx / this.plotWidth() * (drag.to - drag.from);
      this.view.top = drag.top - dy;
      this.setView(drag.from + shift, drag.to + shift);
    });
    canvas.addEventListener('pointerup', event => {
      canvas.classList.remove('dragging');
      if (drag && !drag.moved) {
        const hit = this.hit(...pointIn(canvas, event));
        this.select(hit && hit.bar !== undefined ? hit.bar : -1, false);
      }
      drag = null;
    });
    canvas.addEventListener('pointercancel', () => { drag = null; });
    canvas.addEventListener('pointerleave', () => this.hover(-1, -1));
    canvas.addEventListener('dblclick', event => this.zoom(0.4, pointIn(canvas, event)[0]));
  }

  hover(x, y) {
    const hit = x < 0 ? null : this.hit(x, y);
    const same = hit && this.hovered && hit.bar === this.hovered.bar && hit.arrow === this.hovered.arrow;
    this.hovered = hit;
    if (!same) this.draw();
    this.onHover(hit, x, y);
  }
}

function pointIn(element, event) {
  const box = element.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

// A bar that would be a few pixels at most in the present view.
function isSmall(length, span) {
  return length > 0 && length / span < 0.004;
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
