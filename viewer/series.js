// SPDX-License-Identifier: Apache-2.0
// Utilisation over time, under the diagram and on its time axis.

class SeriesStrip {
  constructor(model, diagram) {
    this.model = model;
    this.diagram = diagram;
    this.canvas = byId('series');
    this.canvas.setAttribute('aria-label', 'Utilisation over time: ' + model.series.map(series => series.name).join(', '));
    replace(byId('series-legend'), ...model.series.map((series, i) => el('span', {},
      el('i', { class: 'thin', style: { background: 'var(--q' + (i % 8 + 1) + ')' } }), series.name + ', mean ' + formatPercent(mean(series.values)))));
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  draw() {
    const { diagram, colours } = this;
    if (!colours || !this.canvas.clientWidth) return;
    const { context: c, width, height } = fitCanvas(this.canvas);
    const top = 8, room = height - top - 4, left = diagram.gutter();
    c.clearRect(0, 0, width, height);
    c.font = '11px system-ui, sans-serif';
    c.textAlign = 'right';
    c.textBaseline = 'middle';
    for (const share of [0, 0.5, 1]) {
      const y = Math.round(top + room * (1 - share)) - 0.5;
      c.strokeStyle = colours.faint;
      c.beginPath();
      c.moveTo(left, y);
      c.lineTo(width, y);
      c.stroke();
      c.fillStyle = colours.muted;
      c.fillText(share * 100 + ' %', left - 9, Math.min(y, height - 7));
    }
    c.save();
    c.beginPath();
    c.rect(left, 0, width - left, height);
    c.clip();
    this.model.series.forEach((series, i) => this.paint(c, series, colours.causes[i % 8], top, room, i === 0));
    c.restore();
  }

  // Values are means over their step, so a step is drawn as a level; several in one pixel become their mean.
  paint(c, series, colour, top, room, filled) {
    const { diagram } = this, { values, start, step } = series;
    const perPixel = (diagram.view.to - diagram.view.from) / diagram.plotWidth() / step;
    const group = Math.max(1, Math.floor(perPixel));
    const first = Math.max(0, Math.floor((diagram.view.from - start) / step / group) * group);
    const last = Math.min(values.length, Math.ceil((diagram.view.to - start) / step) + 1);
    c.beginPath();
    let begun = false, x = 0;
    const base = top + room;
    for (let i = first; i < last; i += group) {
      const y = top + room * (1 - Math.min(1, mean(values.slice(i, i + group))));
      x = diagram.xOf(start + i * step);
      if (!begun && filled) c.moveTo(x, base);
      c[begun || filled ? 'lineTo' : 'moveTo'](x, y);
      x = diagram.xOf(start + Math.min(values.length, i + group) * step);
      c.lineTo(x, y);
      begun = true;
    }
    if (filled && begun) {
      c.lineTo(x, base);
      c.fillStyle = colour;
      c.globalAlpha = 0.18;
      c.fill();
      c.globalAlpha = 1;
    }
    c.strokeStyle = colour;
    c.lineWidth = 1.5;
    c.stroke();
    c.lineWidth = 1;
  }
}

function mean(values) {
  return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : 0;
}
