// SPDX-License-Identifier: Apache-2.0
// The panels beside the diagram (selected op, critical path, stalls) and the tables.

// What is known about a bar, as label and value.
function barFacts(model, bar) {
  const { bars, texts } = model;
  const facts = [['on', texts[model.tracks.label[bars.track[bar]]]]];
  if (model.unit === 'ps') {
    const length = bars.end[bar] - bars.start[bar];
    facts.push(['takes', formatTime(model, length)]);
    facts.push(['from', formatTime(model, bars.start[bar], 9)], ['to', formatTime(model, bars.end[bar], 9)]);
    if (bars.joined[bar]) facts.push(['joined', formatCount(bars.joined[bar] + 1) + ' ops, busy ' +
      formatTime(model, length - bars.idle[bar])]);
    if (bars.bytes[bar] && length) facts.push(['rate', significant(bars.bytes[bar] / length * 1000, 4) + ' GB/s']);
  } else {
    facts.push(['at', formatTime(model, bars.start[bar] + 1)]);
  }
  if (bars.bytes[bar]) facts.push(['bytes', formatBytes(bars.bytes[bar])]);
  if (bars.detail[bar]) facts.push(['', texts[bars.detail[bar]]]);
  return facts;
}

function barTitle(model, bar) {
  const { bars, texts, categories } = model;
  const name = texts[bars.label[bar]] || categories[bars.category[bar]];
  return bars.joined[bar] ? formatCount(bars.joined[bar] + 1) + ' ops, mostly ' + categories[bars.category[bar]] : name;
}

class DetailsPanel {
  constructor(model, source) {
    this.model = model;
    this.source = source;
    this.element = el('div', { class: 'panel details-panel', id: 'details' });
    this.show(-1);
  }

  show(bar) {
    if (bar < 0) return replace(this.element, el('p', { class: 'empty' }, 'Click an operation in the diagram, or press ] .'));
    const line = this.source.lineOf(this.model.bars.place[bar]);
    replace(this.element, el('h2', { class: 'mono' }, barTitle(this.model, bar)),
      el('dl', { class: 'details' }, ...barFacts(this.model, bar).flatMap(([label, value]) => [el('dt', {}, label), el('dd', {}, value)]),
        ...(line ? [el('dt', {}, 'source'), el('dd', { class: 'mono' }, line.where)] : [])));
  }
}

// A bar of coloured shares with its legend.
function sharesBar(shares, colourOf, format) {
  const total = shares.reduce((sum, [, amount]) => sum + amount, 0) || 1;
  return [el('div', { class: 'shares', role: 'img', 'aria-label': shares.map(([name, a]) => name + ' ' + formatPercent(a / total)).join(', ') },
    ...shares.map(([name, amount]) => el('span', {
      title: name + ' ' + formatPercent(amount / total), style: { width: amount / total * 100 + '%', background: colourOf(name) },
    }))),
  el('table', {}, ...shares.map(([name, amount]) => el('tr', {}, el('td', {}, el('span', { class: 'swatch', style: { background: colourOf(name) } }), name),
    el('td', { class: 'right' }, format(amount)), el('td', { class: 'right' }, formatPercent(amount / total)))))];
}

// Causes keep their colour in every panel; kinds of operation have the colour of their bars.
function causeColours(model) {
  const names = [...new Set([...model.path, ...model.stalls].map(thing => model.texts[thing.cause]))];
  return name => model.categories.includes(name) ? 'var(--c-' + name + ')' : 'var(--q' + (Math.max(0, names.indexOf(name)) % 8 + 1) + ')';
}

function sumBy(things, key, amount) {
  const sums = new Map();
  for (const thing of things) sums.set(key(thing), (sums.get(key(thing)) || 0) + amount(thing));
  return [...sums].sort((a, b) => b[1] - a[1]);
}

const MOST_ROWS = 400;

function pathPanel(model, colourOf, pick) {
  const { texts } = model;
  const shares = sumBy(model.path, hop => texts[hop.cause], hop => hop.end - hop.start);
  const rows = model.path.slice(0, MOST_ROWS).map((hop, i) => el('tr', {
    class: 'pick', tabindex: 0, onclick: () => pick(hop), onkeydown: event => { if (event.key === 'Enter') pick(hop); },
  }, el('td', { class: 'right' }, String(i + 1)),
  el('td', { class: 'still' }, texts[model.tracks.label[hop.track]]), el('td', { class: 'mono' }, texts[hop.label]),
  el('td', { class: 'still' }, el('span', { class: 'swatch', style: { background: colourOf(texts[hop.cause]) } }), texts[hop.cause]),
  el('td', { class: 'right still' }, formatTime(model, hop.end - hop.start))));
  return el('div', { class: 'panel' }, el('h2', {}, 'Where the time of the critical path goes'),
    ...sharesBar(shares, colourOf, amount => formatTime(model, amount)),
    el('h2', { class: 'gap' }, 'The path'),
    model.path.length > MOST_ROWS ? el('p', { class: 'empty' }, 'The first ' + MOST_ROWS + ' of ' + formatCount(model.path.length) + ' parts.') : null,
    el('table', {}, el('tr', {}, el('th', { class: 'right' }, '#'), el('th', {}, 'on'), el('th', {}, 'op'), el('th', {}, 'cause'), el('th', { class: 'right' }, 'takes')),
      ...rows));
}

function stallPanel(model, colourOf, pick) {
  const { texts } = model;
  const shares = sumBy(model.stalls, stall => texts[stall.cause], stall => stall.amount);
  const tracks = new Map();
  for (const stall of model.stalls) {
    if (!tracks.has(stall.track)) tracks.set(stall.track, []);
    tracks.get(stall.track).push(stall);
  }
  const total = list => list.reduce((sum, stall) => sum + stall.amount, 0);
  const sorted = [...tracks].sort((a, b) => total(b[1]) - total(a[1]));
  const most = sorted.length ? total(sorted[0][1]) || 1 : 1;
  const rows = sorted.slice(0, MOST_ROWS).map(([track, list]) => el('tr', { class: 'pick', onclick: () => pick(track) },
    el('td', {}, texts[model.tracks.label[track]]),
    el('td', {}, el('div', { class: 'shares' }, ...list.map(stall => el('span', {
      title: texts[stall.cause] + ' ' + formatTime(model, stall.amount),
      style: { width: stall.amount / most * 100 + '%', background: colourOf(texts[stall.cause]) },
    })))), el('td', { class: 'right' }, formatTime(model, total(list)))));
  const isRun = model.kind === 'run'; // a run shows all time, not only waiting
  return el('div', { class: 'panel' }, el('h2', {}, isRun ? 'What all ranks spent their time on' : 'What all of them waited for'),
    ...sharesBar(shares, colourOf, amount => formatTime(model, amount)),
    el('h2', { class: 'gap' }, isRun ? 'Rank by rank' : 'Who waited longest'),
    sorted.length > MOST_ROWS ? el('p', { class: 'empty' }, 'The first ' + MOST_ROWS + ' of ' + sorted.length + '.') : null,
    el('table', {}, ...rows));
}

function tableCard(table) {
  return el('section', { class: 'card' }, table.title ? el('h2', {}, table.title) : null,
    el('div', { class: 'scroll', tabindex: 0 }, el('table', {},
      el('thead', {}, el('tr', {}, ...table.columns.map(([title, right]) => el('th', { class: right ? 'right' : '', scope: 'col' }, title)))),
      el('tbody', {}, ...table.rows.map(row => el('tr', {}, ...row.map((cell, i) =>
        el('td', { class: table.columns[i][1] ? 'right' : '' }, cell))))))));
}
