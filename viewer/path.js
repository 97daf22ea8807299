// SPDX-License-Identifier: Apache-2.0
// The critical path, drawn through the diagram. If thousands of hops fall into few pixels, the path consists of
// rectangles, at most one per pixel column: stroking a line that crosses itself so often takes a tenth of a second.

const LOW_ROW = 8;      // rows lower than this, in pixels,
const MANY_HOPS = 1500; // or more hops than this on the screen

function paintPath(diagram, c, colours) {
  let hops = 0;
  eachHop(diagram, () => hops++);
  if (diagram.rowHeight() < LOW_ROW || hops > MANY_HOPS) return paintLowPath(diagram, c, colours);
  const line = pathLine(diagram);
  c.lineJoin = 'round';
  for (const [lineWidth, colour] of [[5, colours.panel], [2.5, colours.path]]) {
    c.strokeStyle = colour;
    c.lineWidth = lineWidth;
    c.globalAlpha = lineWidth === 5 ? 0.7 : 1;
    c.stroke(line);
  }
  c.globalAlpha = 1;
  c.lineWidth = 1;
}

// The visible hops in pixels: from, to, height.
function eachHop(diagram, accept) {
  const { view, size, model } = diagram, half = diagram.rowHeight() / 2, bottom = size.height + 8;
  for (const hop of model.path) {
    const row = diagram.rowOf[hop.track];
    if (row < 0 || hop.end < view.from || hop.start > view.to) continue;
    const y = Math.max(-8, Math.min(bottom, diagram.yOf(row) + half));
    accept(Math.max(-20, diagram.xOf(hop.start)), Math.min(size.width + 20, diagram.xOf(hop.end)), y);
  }
}

function pathLine(diagram) {
  const line = new Path2D();
  let begun = false;
  eachHop(diagram, (from, to, y) => {
    if (begun) line.lineTo(from, y);
    else line.moveTo(from, y);
    line.lineTo(to, y);
    begun = true;
  });
  return line;
}

// A column of pixels shows the range of the path in it; longer hops are separate bars. Columns
// in which the path covers almost everything are pale, so that the rest stays visible.
function paintLowPath(diagram, c, colours) {
  let column = -Infinity, low = 0, high = 0, last = null;
  const flush = () => {
    if (column === -Infinity) return;
    const wide = high - low > diagram.size.height / 3;
    c.globalAlpha = wide ? 0.16 : 1;
    c.fillRect(wide ? column : column - 1, low - 1, wide ? 1 : 2, high - low + 2);
    c.globalAlpha = 1;
  };
  const reach = (x, y) => {
    if (Math.round(x) !== column) {
      flush();
      column = Math.round(x);
      low = high = y;
    }
    low = Math.min(low, y);
    high = Math.max(high, y);
  };
  c.fillStyle = colours.path;
  eachHop(diagram, (from, to, y) => {
    if (last !== null) reach(from, last);
    reach(from, y);
    if (to - from > 1) c.fillRect(from, y - 1, to - from, 2);
    reach(to, y);
    last = y;
  });
  flush();
}
