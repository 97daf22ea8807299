// SPDX-License-Identifier: Apache-2.0
// The machine as a map: nodes where they are on the grid, links coloured by how busy they were.

class MachinePanel {
  constructor(model, pick) {
    this.model = model;
    this.pick = pick;
    this.canvas = el('canvas', { role: 'img', 'aria-label': 'Link utilisation on the machine' });
    this.under = el('div', { class: 'under', 'aria-live': 'polite' });
    this.most = Math.max(1e-9, ...model.links.map(link => link[2]));
    this.element = el('div', { class: 'panel flush' }, el('div', { class: 'machine' }, this.canvas),
      el('div', { class: 'scale' }, '0 %', el('span', { class: 'ramp' }), formatPercent(this.most) + ' busiest link'), this.under);
    this.showBusiest();
    this.canvas.addEventListener('pointermove', event => this.hover(event));
    this.canvas.addEventListener('pointerleave', () => this.showBusiest());
    this.canvas.addEventListener('click', event => {
      const node = this.nodeAt(...pointIn(this.canvas, event));
      if (node >= 0 && this.model.nodes[node][3] >= 0) this.pick(this.model.nodes[node][3]);
    });
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  linkText(link) {
    const { nodes, texts } = this.model;
    return texts[nodes[link[0]][4]] + ' → ' + texts[nodes[link[1]][4]] + ': ' + formatPercent(link[2]) + ' busy, ' +
      formatBytes(link[3]) + (link[4] ? ', ' + texts[link[4]] : '');
  }

  showBusiest() {
    const busiest = [...this.model.links].sort((a, b) => b[2] - a[2]).slice(0, 3);
    replace(this.under, ...busiest.map(link => el('div', {}, this.linkText(link))));
  }

  layout() {
    const { nodes, frames } = this.model;
    const xs = nodes.map(n => n[0]).concat(frames.flatMap(f => [f[0], f[2]]));
    const ys = nodes.map(n => n[1]).concat(frames.flatMap(f => [f[1], f[3]]));
    const bounds = [xs, ys].map(list => list.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]));
    const { width, height } = this.size, margin = 34;
    const scale = Math.min((width - 2 * margin) / Math.max(1, bounds[0][1] - bounds[0][0]),
      (height - 2 * margin) / Math.max(1, bounds[1][1] - bounds[1][0]), 90);
    const left = (width - scale * (bounds[0][1] - bounds[0][0])) / 2, top = (height - scale * (bounds[1][1] - bounds[1][0])) / 2;
    this.scale = scale;
    this.at = node => [left + (node[0] - bounds[0][0]) * scale, top + (node[1] - bounds[1][0]) * scale];
    this.box = Math.max(2, Math.min(34, scale * 0.52));
  }

  colour(load) {
    const share = Math.max(0, Math.min(1, load / this.most));
    const { colours } = this, low = share < 0.5;
    return mixColours(low ? colours['heat-low'] : colours['heat-mid'], low ? colours['heat-mid'] : colours['heat-high'],
      low ? share * 2 : share * 2 - 1);
  }

  // A link's line, a little to the right of its direction, so that both directions are seen.
  linkLine(link) {
    const [x1, y1] = this.at(this.model.nodes[link[0]]), [x2, y2] = this.at(this.model.nodes[link[1]]);
    const length = Math.hypot(x2 - x1, y2 - y1) || 1, dx = (x2 - x1) / length, dy = (y2 - y1) / length;
    const side = Math.min(4.5, this.box * 0.16), gap = Math.min(this.box / 2, length * 0.3);
    return { x1: x1 + dx * gap - dy * side, y1: y1 + dy * gap + dx * side, x2: x2 - dx * gap - dy * side, y2: y2 - dy * gap + dx * side,
      dx, dy, length };
  }

  draw() {
    if (!this.colours || !this.canvas.clientWidth) return;
    const { context: c, width, height } = fitCanvas(this.canvas);
    this.size = { width, height };
    this.layout();
    c.clearRect(0, 0, width, height);
    this.paintFrames(c);
    const order = this.model.links.map((link, i) => i).sort((a, b) => this.model.links[a][2] - this.model.links[b][2]);
    for (const i of order) this.paintLink(c, this.model.links[i]);
    this.paintNodes(c);
  }

  paintFrames(c) {
    c.font = '11px system-ui, sans-serif';
    c.textBaseline = 'bottom';
    c.textAlign = 'left';
    for (const [x0, y0, x1, y1, label] of this.model.frames) {
      const [a, b] = this.at([x0, y0]), [d, e] = this.at([x1, y1]);
      c.strokeStyle = this.colours.line;
      c.strokeRect(a, b, d - a, e - b);
      c.fillStyle = this.colours.muted;
      if (d - a > 40) c.fillText(this.model.texts[label], a + 4, b - 2);
    }
  }

  // Links that close a torus are drawn as two short stubs instead of a line across everything.
  paintLink(c, link) {
    const line = this.linkLine(link), stub = this.scale * 0.42;
    c.strokeStyle = c.fillStyle = this.colour(link[2]);
    c.lineWidth = Math.max(1, Math.min(4, this.box * 0.14));
    c.beginPath();
    if (link[5]) {
      c.moveTo(line.x1 - line.dx * this.box, line.y1 - line.dy * this.box);
      c.lineTo(line.x1 - line.dx * (this.box + stub * 0.6), line.y1 - line.dy * (this.box + stub * 0.6));
      c.moveTo(line.x2 + line.dx * this.box, line.y2 + line.dy * this.box);
      c.lineTo(line.x2 + line.dx * (this.box + stub * 0.6), line.y2 + line.dy * (this.box + stub * 0.6));
      c.stroke();
      return;
    }
    c.moveTo(line.x1, line.y1);
    c.lineTo(line.x2, line.y2);
    c.stroke();
    const head = c.lineWidth * 1.9;
    if (head < 4) return;
    c.beginPath();
    c.moveTo(line.x2 + line.dx * 2, line.y2 + line.dy * 2);
    c.lineTo(line.x2 - line.dx * head - line.dy * head * 0.6, line.y2 - line.dy * head + line.dx * head * 0.6);
    c.lineTo(line.x2 - line.dx * head + line.dy * head * 0.6, line.y2 - line.dy * head - line.dx * head * 0.6);
    c.fill();
  }

  paintNodes(c) {
    const { nodes, texts } = this.model, box = this.box;
    if (box < 5) return; // at this size the links are the picture
    c.lineWidth = 1;
    c.textAlign = 'center';
    c.textBaseline = 'middle';
    c.font = Math.min(12, box * 0.42) + 'px system-ui, sans-serif';
    for (const node of nodes) {
      const [x, y] = this.at(node);
      c.fillStyle = this.colours.panel;
      c.strokeStyle = node[3] >= 0 ? this.colours.muted : this.colours.line;
      c.beginPath();
      c.roundRect(x - box / 2, y - box / 2, box, box, box * 0.2);
      c.fill();
      c.stroke();
      if (node[2] > 0) { // how busy its own engines were: filled from below
        c.globalAlpha = 0.35;
        c.fillStyle = this.colours.category[1];
        c.fillRect(x - box / 2 + 1, y + box / 2 - 1 - (box - 2) * Math.min(1, node[2]), box - 2, (box - 2) * Math.min(1, node[2]));
        c.globalAlpha = 1;
      }
      if (box >= 16) {
        c.fillStyle = this.colours.text;
        c.fillText(node[3] >= 0 ? String(node[3]) : texts[node[4]], x, y, box - 3);
      }
    }
  }

  nodeAt(x, y) {
    return this.model.nodes.findIndex(node => {
      const [nx, ny] = this.at(node);
      return Math.abs(x - nx) <= this.box / 2 && Math.abs(y - ny) <= this.box / 2;
    });
  }

  hover(event) {
    const [x, y] = pointIn(this.canvas, event);
    const node = this.nodeAt(x, y);
    this.canvas.style.cursor = node >= 0 ? 'pointer' : 'default';
    if (node >= 0) {
      const found = this.model.nodes[node];
      return replace(this.under, el('div', {}, this.model.texts[found[4]] + ': engines ' + formatPercent(found[2]) + ' busy'),
        found[5] ? el('div', {}, this.model.texts[found[5]]) : null, el('div', { class: 'empty' }, 'Click to show this rank alone.'));
    }
    let best = null, distance = 7;
    for (const link of this.model.links) {
      const line = this.linkLine(link);
      const t = Math.max(0, Math.min(1, ((x - line.x1) * (line.x2 - line.x1) + (y - line.y1) * (line.y2 - line.y1)) /
        (Math.hypot(line.x2 - line.x1, line.y2 - line.y1) ** 2 || 1)));
      const d = Math.hypot(x - line.x1 - t * (line.x2 - line.x1), y - line.y1 - t * (line.y2 - line.y1));
      if (d < distance) {
        distance = d;
        best = link;
      }
    }
    if (best) replace(this.under, el('div', {}, this.linkText(best)));
    else this.showBusiest();
  }
}

function mixColours(a, b, share) {
  const parse = text => [1, 3, 5].map(i => parseInt(text.slice(i, i + 2), 16));
  const [x, y] = [parse(a), parse(b)];
  return 'rgb(' + x.map((v, i) => Math.round(v + (y[i] - v) * share)).join(' ') + ')';
}
