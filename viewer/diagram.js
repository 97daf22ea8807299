// SPDX-License-Identifier: Apache-2.0
// The space-time diagram: time across, tracks down, bars and arrows. It knows what is visible, selected and under the
// mouse; paint.js draws it.

const AXIS = 26;              // height of the time axis
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

  trackLabel(track) { return this.model.texts[this.model.tracks.label[track]]; }
  font(size, weight = '') { return weight + ' ' + size + 'px system-ui, "DejaVu Sans", "Liberation Sans", sans-serif'; }
  // The canvas' width is asked for once per frame: asking the browser costs more than anything else here.
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

  arrowLine(i) {
    // From near the edge of one bar to near that of the other, so that little text is crossed; steps have space to be slanted.
    const { arrows } = this.model, half = this.rowHeight() / 2, slant = this.model.unit === 'steps' ? 0.22 : 0;
    const from = this.rowOf[arrows.fromTrack[i]], to = this.rowOf[arrows.toTrack[i]];
    const reach = half < 7 ? 0 : half * 0.5 * Math.sign(to - from);
    return [this.xOf(arrows.from[i] - slant), this.yOf(from) + half + reach, this.xOf(arrows.to[i] + slant), this.yOf(to) + half - reach];
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

  paint() { paintDiagram(this); }

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

// A bar that would be a few pixels at most in the current view.
function isSmall(length, span) {
  return length > 0 && length / span < 0.004;
}
