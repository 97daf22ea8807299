// SPDX-License-Identifier: Apache-2.0
// Puts the page together from what the data has, and listens to the keyboard. Start reading here.
//
//   page.html, style.css   the frame and its two themes       pack.py      makes one C file of all of this
//   model.js               the data, decoded; units           dom.js       elements, canvases, colours
//   diagram.js             the space-time diagram             series.js    utilisation under it
//   source.js              the kernel's text                  steps.js     a counterexample step by step
//   panels.js              op, critical path, stalls, tables  machine.js   the map of the machine
//   plots.js               a sweep's plots                    paint.js     draws the diagram
//                                                             path.js      and the critical path in it
//
// src/report/page.h describes what a page can have; nothing here knows plans or machines.

const KINDS = { verify: 'verification', sim: 'simulation', run: 'run', sweep: 'sweep' };
const KEYS = [
  ['← →', 'pan'], ['↑ ↓', 'scroll the rows'], ['+ −', 'zoom; also the mouse wheel and double click'], ['0', 'show all'],
  ['{ }', 'lower or higher rows'], ['[ ]', 'previous or next operation of the row'], ['j k', 'one row down or up'],
  ['n p', 'step forward or back (counterexample)'], ['Home End', 'first or last step'], ['space', 'play or pause'],
  ['/', 'search; Enter goes to the next one found'], ['f', 'filter by rank: 0-3, 8, 12-'], ['a', 'arrows on or off'],
  ['c', 'critical path on or off'], ['s', 'next panel'], ['w', 'wider or narrower panels'], ['t', 'light or dark'], ['?', 'this help'],
];

class Page {
  constructor(model) {
    this.model = model;
    this.tabs = [];
    this.colouredParts = [];
    this.fillHead();
    this.source = new SourcePanel(model);
    if (model.tracks.count) this.buildDiagram();
    if (model.plots.length) this.reveal('plots', ...model.plots.map(plotCard));
    if (model.tables.length) this.reveal('tables', ...model.tables.map(tableCard));
    document.body.classList.toggle('app', model.tracks.count > 0);
    document.body.classList.toggle('has-steps', Boolean(this.player) && !byId('state').hidden);
    document.body.classList.toggle('has-tables', model.tables.length > 0 || model.plots.length > 0);
    this.buildSide();
    this.setTheme(preferredTheme());
    this.listen();
    if (this.player) this.player.advance(this.firstBadStep());
    else if (model.bars.count) this.source.scrollTo(model.bars.place.find(place => place > 0) || 0);
  }

  // Head.

  fillHead() {
    const { raw } = this.model;
    document.title = raw.title + (raw.verdict ? ': ' + raw.verdict : '') + ' — peal';
    byId('title').textContent = raw.title;
    byId('verdict').textContent = raw.verdict;
    byId('kind').textContent = KINDS[raw.kind] || '';
    byId('top').className = 'tone-' + raw.tone;
    byId('headline').textContent = raw.headline;
    byId('headline').hidden = !raw.headline;
    replace(byId('facts'), ...raw.facts.map(([label, value]) => el('div', {}, el('dt', {}, label), el('dd', {}, value))));
    replace(byId('notes'), ...raw.notes.map(note => el('p', {}, note)));
  }

  reveal(id, ...children) {
    byId(id).hidden = false;
    replace(byId(id), ...children);
  }

  // The diagram and what goes with it.

  buildDiagram() {
    const { model } = this;
    byId('stage').hidden = false;
    const diagram = this.diagram = new Diagram(model, byId('diagram'));
    this.colouredParts.push(diagram);
    byId('diagram').setAttribute('aria-label', 'Space-time diagram: ' + model.tracks.count + ' rows, ' + formatCount(model.bars.count) +
      ' operations, ' + formatCount(model.arrows.count) + ' arrows');
    this.details = new DetailsPanel(model, this.source);
    diagram.onSelect = bar => this.showSelected(bar);
    diagram.onHover = (hit, x, y) => this.showTooltip(hit, x, y);
    diagram.onView = () => this.showRange();
    byId('path-button').hidden = model.path.length === 0;
    byId('arrows-button').hidden = model.arrows.count === 0;
    if (model.series.length) {
      byId('strip').hidden = false;
      this.strip = new SeriesStrip(model, diagram);
      this.colouredParts.push(this.strip);
    }
    if (model.steps.list.length) {
      byId('transport').hidden = false;
      byId('state').hidden = model.steps.memories.length + model.steps.cells.length === 0;
      this.player = new StepPlayer(model, diagram, this.source);
    }
    this.buildGroups();
    this.buildLegend();
    new ResizeObserver(() => {
      if (this.fitted) diagram.view.row = 0;
      diagram.size = null;
      diagram.draw();
    }).observe(byId('diagram'));
    this.fitted = true;
    diagram.setView(0, model.end * 1.02);
  }

  // Engines and links have tracks too, which are shown on request.
  buildGroups() {
    const { model, diagram } = this;
    const groups = [...new Set(model.tracks.group)].filter(group => group > 0);
    replace(byId('group-buttons'), ...groups.map(group => {
      const button = el('button', { type: 'button', 'aria-pressed': 'false' }, model.texts[group]);
      button.addEventListener('click', () => {
        const on = !diagram.groups.has(group);
        if (on) diagram.groups.add(group);
        else diagram.groups.delete(group);
        button.setAttribute('aria-pressed', String(on));
        diagram.filter();
      });
      return button;
    }));
  }

  buildLegend() {
    const { model } = this;
    const used = new Set(model.bars.category);
    const anyBad = model.bars.flags.some(flags => flags & FLAG_BAD);
    const stuck = model.bars.flags.some(flags => flags & FLAG_OPEN);
    const parts = model.categories.map((name, i) => used.has(i) ? el('span', {}, el('i', { style: { background: 'var(--c-' + name + ')' } }), name) : null);
    if (anyBad) parts.push(el('span', {}, el('i', { style: { background: 'var(--bad)' } }), stuck ? 'stuck' : this.model.steps.list.filter(step => step.flags & FLAG_BAD).length === 1 ? 'goes wrong' : 'collides'));
    if (model.path.length) parts.push(el('span', {}, el('i', { class: 'thin', style: { background: 'var(--path)' } }), 'critical path'));
    replace(byId('legend'), ...parts);
  }

  buildSide() {
    const { model } = this;
    if (this.player) {
      this.addTab('Source and steps', el('div', { class: 'panel halves' }, this.source.element, el('div', {}, this.player.element)));
    } else if (model.sources.length && model.tracks.count) {
      this.addTab('Source', el('div', { class: 'panel halves' }, this.source.element, this.details.element));
    } else if (model.tracks.count) {
      this.addTab('Operation', this.details.element);
    } else if (model.sources.length) {
      this.addTab('Source', this.source.element);
    }
    const colourOf = causeColours(model);
    const pickHop = hop => {
      this.diagram.select(this.diagram.barNear(hop.track, (hop.start + hop.end) / 2), false);
      this.diagram.reveal(hop.start, hop.end, hop.track);
      this.source.light(hop.place);
    };
    if (model.path.length) this.addTab('Critical path', pathPanel(model, colourOf, pickHop));
    if (model.stalls.length) this.addTab(model.kind === 'run' ? 'Time by operation' : 'Stalls', stallPanel(model, colourOf, track => this.diagram.reveal(0, model.end, track)));
    if (model.nodes.length) {
      this.machine = new MachinePanel(model, rank => this.setFilter(String(rank)));
      this.colouredParts.push(this.machine);
      this.addTab('Machine', this.machine.element);
    }
    if (this.player) this.addTab('Operation', this.details.element);
    if (!this.tabs.length) return;
    byId('side').hidden = false;
    byId('tabs').append(el('button', { type: 'button', class: 'enlarge', title: 'Wider or narrower (w)', 'aria-label': 'Wider or narrower panels',
      onclick: () => this.toggleWide() }, '⤢'));
    this.showTab(0);
  }

  addTab(name, element) {
    const index = this.tabs.length;
    const button = el('button', { type: 'button', role: 'tab', id: 'tab-' + index, 'aria-controls': 'panel-' + index, onclick: () => this.showTab(index) }, name);
    button.addEventListener('keydown', event => {
      const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!move) return;
      this.showTab((index + move + this.tabs.length) % this.tabs.length).focus();
      event.stopPropagation();
    });
    element.setAttribute('role', 'tabpanel');
    element.setAttribute('aria-labelledby', 'tab-' + index);
    element.id = 'panel-' + index;
    byId('tabs').append(button);
    byId('panels').append(element);
    this.tabs.push({ button, element });
  }

  showTab(index) {
    this.tab = index;
    this.tabs.forEach(({ button, element }, i) => {
      button.setAttribute('aria-selected', String(i === index));
      button.tabIndex = i === index ? 0 : -1;
      element.hidden = i !== index;
    });
    if (this.machine) this.machine.draw();
    return this.tabs[index].button;
  }

  toggleWide() {
    document.body.classList.toggle('wide-side');
  }

  // Events of the diagram.

  showSelected(bar) {
    this.details.show(bar);
    if (bar < 0) {
      if (!this.player) this.source.light(0);
      return;
    }
    const { bars } = this.model;
    this.source.light(bars.place[bar]);
    if (this.player && bars.start[bar] < this.player.items.length) this.player.go(bars.start[bar] + 1);
    else announce(barTitle(this.model, bar) + ', ' + barFacts(this.model, bar).map(fact => fact.join(' ')).join(', '));
  }

  showTooltip(hit, x, y) {
    const tip = byId('tooltip');
    tip.hidden = !hit;
    if (!hit) return;
    replace(tip, ...(hit.bar !== undefined ? this.barTip(hit.bar) : this.arrowTip(hit.arrow)));
    const box = byId('holder').getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(x + 14, box.width - tip.offsetWidth - 6)) + 'px';
    tip.style.top = (y + tip.offsetHeight + 20 < box.height ? y + 16 : Math.max(2, y - tip.offsetHeight - 10)) + 'px';
  }

  barTip(bar) {
    const line = this.source.lineOf(this.model.bars.place[bar]);
    return [el('b', { class: 'mono' + (this.model.bars.flags[bar] & FLAG_BAD ? ' bad' : '') }, barTitle(this.model, bar)),
      ...barFacts(this.model, bar).map(([label, value]) => el('div', {}, (label ? label + ' ' : '') + value)),
      line ? el('code', {}, line.where + '  ' + line.text) : null];
  }

  arrowTip(arrow) {
    const { model } = this, { arrows } = model;
    return [el('b', { class: 'mono' }, model.texts[arrows.label[arrow]] || model.categories[arrows.category[arrow]]),
      el('div', {}, this.diagram.trackLabel(arrows.fromTrack[arrow]) + ' → ' + this.diagram.trackLabel(arrows.toTrack[arrow])),
      model.unit === 'ps' ? el('div', {}, 'takes ' + formatTime(model, arrows.to[arrow] - arrows.from[arrow])) : null,
      arrows.bytes[arrow] ? el('div', {}, formatBytes(arrows.bytes[arrow])) : null];
  }

  showRange() {
    const { view } = this.diagram, whole = this.model.end * 1.02;
    byId('range-thumb').style.left = view.from / whole * 100 + '%';
    byId('range-thumb').style.width = (view.to - view.from) / whole * 100 + '%';
    if (this.strip) this.strip.draw();
  }

  firstBadStep() {
    const { list } = this.model.steps;
    const last = list.map(step => step.flags & FLAG_BAD).lastIndexOf(FLAG_BAD);
    return last >= 0 ? last + 1 : 0;
  }

  // Search and filter.

  search(text) {
    const { model, diagram } = this, wanted = text.trim().toLowerCase();
    this.found = [];
    this.foundAt = -1;
    diagram.matches = null;
    byId('search-count').textContent = '';
    if (wanted) {
      const hits = model.texts.map(string => string.toLowerCase().includes(wanted));
      const lines = model.places.map((place, i) => {
        const line = i && this.source.lineOf(i);
        return Boolean(line && line.text.toLowerCase().includes(wanted));
      });
      diagram.matches = Uint8Array.from(hits, hit => hit ? 1 : 0);
      for (let i = 0; i < model.bars.count; i++) {
        const bar = hits[model.bars.label[i]] || hits[model.bars.detail[i]] || lines[model.bars.place[i]];
        if (!bar || diagram.rowOf[model.bars.track[i]] < 0) continue;
        diagram.matches[model.bars.label[i]] = 1;
        this.found.push(i);
      }
      this.found.sort((a, b) => model.bars.start[a] - model.bars.start[b]);
      byId('search-count').textContent = this.found.length ? formatCount(this.found.length) : 'none';
    }
    diagram.draw();
  }

  findNext(direction) {
    if (!this.found || !this.found.length) return;
    this.foundAt = (this.foundAt + direction + this.found.length) % this.found.length;
    byId('search-count').textContent = this.foundAt + 1 + ' / ' + formatCount(this.found.length);
    this.diagram.select(this.found[this.foundAt], true);
  }

  setFilter(text) {
    const input = byId('filter');
    if (input.value !== text) input.value = text;
    const accepts = parseRanks(text);
    input.setAttribute('aria-invalid', String(!accepts));
    input.title = accepts ? 'for example 0-3, 8, 12-' : 'not a list of ranks: write for example 0-3, 8, 12-';
    if (!accepts) return;
    this.diagram.filter(accepts);
    if (this.player) {
      this.player.accepts = accepts;
      this.player.showState();
    }
    this.search(byId('search').value);
    announce(this.diagram.rows.length + ' rows shown');
  }

  // Theme.

  setTheme(theme) {
    document.documentElement.dataset.theme = theme;
    const colours = readColours(this.model.categories);
    for (const part of this.colouredParts) {
      part.colours = colours;
      part.draw();
    }
  }

  toggleTheme() {
    const theme = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
    try {
      localStorage.setItem('peal-theme', theme);
    } catch (error) { /* a page opened from disk may have no storage; the choice then lasts as long as the page */ }
    this.setTheme(theme);
  }

  // Events.

  listen() {
    byId('theme-button').addEventListener('click', () => this.toggleTheme());
    byId('help-button').addEventListener('click', () => this.showHelp());
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.setTheme(preferredTheme()));
    window.addEventListener('beforeprint', () => this.setTheme('light'));
    window.addEventListener('afterprint', () => this.setTheme(preferredTheme()));
    document.addEventListener('keydown', event => this.onKey(event));
    if (!this.diagram) return;
    byId('search').addEventListener('input', event => this.search(event.target.value));
    byId('search').addEventListener('keydown', event => { if (event.key === 'Enter') this.findNext(event.shiftKey ? -1 : 1); });
    byId('filter').addEventListener('input', event => this.setFilter(event.target.value));
    byId('zoom-in').addEventListener('click', () => this.zoom(1 / 1.6));
    byId('zoom-out').addEventListener('click', () => this.zoom(1.6));
    byId('zoom-fit').addEventListener('click', () => this.diagram.fit());
    byId('arrows-button').addEventListener('click', () => this.toggle('showArrows', 'arrows-button'));
    byId('path-button').addEventListener('click', () => this.toggle('showPath', 'path-button'));
    this.listenToRange();
  }

  listenToRange() {
    const range = byId('range');
    const move = event => {
      const share = (event.clientX - range.getBoundingClientRect().left) / range.clientWidth;
      const span = this.diagram.view.to - this.diagram.view.from, middle = share * this.model.end * 1.02;
      this.diagram.setView(middle - span / 2, middle + span / 2);
    };
    range.addEventListener('pointerdown', event => {
      range.setPointerCapture(event.pointerId);
      move(event);
    });
    range.addEventListener('pointermove', event => { if (event.buttons) move(event); });
  }

  zoom(factor) {
    this.diagram.zoom(factor);
  }

  toggle(what, button) {
    this.diagram[what] = !this.diagram[what];
    byId(button).setAttribute('aria-pressed', String(this.diagram[what]));
    this.diagram.draw();
  }

  onKey(event) {
    const typing = ['INPUT', 'SELECT', 'TEXTAREA'].includes(event.target.tagName);
    if (event.key === 'Escape' && typing) {
      event.target.blur();
      if (this.diagram) byId('diagram').focus();
      return;
    }
    if (typing && event.target.type !== 'range') return;
    if (event.ctrlKey || event.metaKey || event.altKey || byId('help').open) return;
    const action = this.actions()[event.key];
    if (!action) return;
    // Arrows and the space bar keep their meaning where the focus is on something that uses them.
    const inPanel = event.target.closest('.source, .panel, #state, #tables, button, #step-slider');
    if (inPanel && (event.key.startsWith('Arrow') || event.key === ' ')) return;
    event.preventDefault();
    action();
  }

  actions() {
    const common = {
      '?': () => this.showHelp(), t: () => this.toggleTheme(), w: () => this.toggleWide(),
      s: () => this.tabs.length && this.showTab((this.tab + 1) % this.tabs.length),
    };
    if (!this.diagram) return common;
    const { diagram } = this;
    const keys = {
      ...common,
      ArrowLeft: () => diagram.pan(-0.1), ArrowRight: () => diagram.pan(0.1), ArrowUp: () => diagram.scroll(-60), ArrowDown: () => diagram.scroll(60),
      '+': () => this.zoom(1 / 1.6), '=': () => this.zoom(1 / 1.6), '-': () => this.zoom(1.6), 0: () => diagram.fit(),
      '{': () => diagram.scaleRows(1 / 1.3), '}': () => diagram.scaleRows(1.3),
      '[': () => diagram.step(-1), ']': () => diagram.step(1), j: () => diagram.stepRow(1), k: () => diagram.stepRow(-1),
      '/': () => byId('search').focus(), f: () => byId('filter').focus(),
      a: () => this.toggle('showArrows', 'arrows-button'), c: () => this.model.path.length && this.toggle('showPath', 'path-button'),
    };
    if (this.player) {
      const { player } = this;
      Object.assign(keys, {
        n: () => player.go(player.done + 1), p: () => player.go(player.done - 1), PageDown: () => player.go(player.done + 1),
        PageUp: () => player.go(player.done - 1), Home: () => player.go(0), End: () => player.go(player.items.length), ' ': () => player.play(),
      });
    }
    return keys;
  }

  showHelp() {
    const dialog = byId('help');
    replace(dialog, el('h2', {}, 'Keys', el('button', { type: 'button', onclick: () => dialog.close() }, 'Close')),
      el('table', {}, ...KEYS.map(([keys, text]) => el('tr', {},
        el('td', {}, ...keys.split(' ').flatMap(key => [el('kbd', {}, key), ' '])), el('td', {}, text)))),
      el('p', {}, 'Rows are ranks, lanes or engines; time runs to the right. A bar is an operation, an arrow a notification or a message. ' +
        'Click a bar to see its source line. Drag to move, turn the wheel to zoom, hold shift to scroll the rows.'));
    if (!dialog.open) dialog.showModal();
  }
}

function preferredTheme() {
  let chosen = null;
  try {
    chosen = localStorage.getItem('peal-theme');
  } catch (error) { /* as above */ }
  if (chosen === 'light' || chosen === 'dark') return chosen;
  return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
}

function start() {
  const raw = JSON.parse(byId('data').textContent);
  window.pealPage = new Page(decodeModel(raw)); // for tests and inspection
}

start();
