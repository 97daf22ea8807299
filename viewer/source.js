// SPDX-License-Identifier: Apache-2.0
// The kernel's text with the line of the current op highlighted.

const PEAL_WORDS = new Set(('kernel in out inout window private wide signal shared raw uninitialised channel grid torus tree from let var ' +
  'exclusive notify relaxed acquire release acq_rel fence wait at launch mod send to on free for step peers if else assert lane local int reduce implements of recv ' +
  'recv_slot peek and or not rank nranks').split(' '));

class SourcePanel {
  constructor(model) {
    this.model = model;
    this.shown = -1;
    this.lines = [];
    this.lit = [];
    this.badPlaces = new Set();
    this.name = model.sources.length > 1
      ? el('select', { 'aria-label': 'Source file', onchange: event => this.show(Number(event.target.value)) },
        ...model.sources.map((source, i) => el('option', { value: i }, source.name)))
      : el('span', {}, model.sources.length ? model.sources[0].name : '');
    this.via = el('span');
    this.code = el('pre', { class: 'source', tabindex: 0, 'aria-label': 'Source' });
    this.element = el('div', { class: 'panel flush' }, el('div', { class: 'source-head' }, this.name, this.via), this.code);
    if (model.sources.length) this.show(0);
    else replace(this.code, el('p', { class: 'empty' }, '  no source in this page'));
  }

  show(index) {
    if (index === this.shown) return;
    this.shown = index;
    if (this.name.tagName === 'SELECT') this.name.value = index;
    this.lines = this.model.sources[index].text.split('\n').map((text, i) =>
      el('div', {}, el('span', { 'aria-hidden': 'true' }, String(i + 1)), el('code', {}, ...highlight(text))));
    replace(this.code);
    for (const line of this.lines) this.code.append(line); // a call has fewer arguments than a long text has lines
    for (const place of this.badPlaces) this.markBad(place);
  }

  markBad(place) {
    const { source, line } = this.model.places[place];
    if (source === this.shown && this.lines[line - 1]) this.lines[line - 1].classList.add('bad');
  }

  // Places that collide, or are stuck: marked whatever is highlighted.
  setBad(places) {
    this.badPlaces = new Set(places.filter(place => place > 0));
    for (const place of this.badPlaces) this.markBad(place);
  }

  light(place) {
    for (const [line, text] of this.lit) {
      this.lines[line].classList.remove('lit');
      this.lines[line].removeAttribute('aria-current');
      replace(this.lines[line].lastChild, ...highlight(text));
    }
    this.lit = [];
    replace(this.via);
    const at = this.model.places[place];
    if (!place || at.source < 0) return;
    if (at.source !== this.shown) this.show(at.source);
    const line = this.lines[at.line - 1];
    if (!line) return;
    const text = this.model.sources[at.source].text.split('\n')[at.line - 1];
    this.lit = [[at.line - 1, text]];
    line.classList.add('lit');
    line.setAttribute('aria-current', 'true');
    if (at.col > 0 && at.len > 0)
      replace(line.lastChild, ...highlight(text.slice(0, at.col - 1)),
        el('mark', {}, ...highlight(text.slice(at.col - 1, at.col - 1 + at.len))), ...highlight(text.slice(at.col - 1 + at.len)));
    const box = this.code.getBoundingClientRect(), row = line.getBoundingClientRect();
    if (row.top < box.top + 20 || row.bottom > box.bottom - 20)
      this.code.scrollTop += row.top - box.top - box.height / 3;
    this.showCallers(at.via);
  }

  // Brings a place into view without highlighting it.
  scrollTo(place) {
    const at = this.model.places[place];
    if (!place || at.source < 0) return;
    if (at.source !== this.shown) this.show(at.source);
    if (this.lines[at.line - 1]) this.code.scrollTop += this.lines[at.line - 1].getBoundingClientRect().top - this.code.getBoundingClientRect().top - 60;
  }

  showCallers(via) {
    for (let hops = 0; via >= 0 && via < this.model.places.length && hops < 16; hops++) {
      const caller = this.model.places[via];
      const file = caller.source >= 0 ? this.model.sources[caller.source].name : '?';
      this.via.append((hops ? ', from ' : 'called from ') + file + ':' + caller.line);
      via = caller.via;
    }
  }

  // The text of a place's line, for tooltips.
  lineOf(place) {
    const at = this.model.places[place];
    if (!place || at.source < 0) return null;
    const text = this.model.sources[at.source].text.split('\n')[at.line - 1];
    return { where: this.model.sources[at.source].name + ':' + at.line, text: (text || '').trim() };
  }
}

function highlight(text) {
  const parts = [];
  const pattern = /(\/\/.*$)|([A-Za-z_]\w*)|(\d+(?:\.\d+)?)/g;
  let last = 0, match;
  while ((match = pattern.exec(text))) {
    const kind = match[1] ? 'n' : match[3] ? 'd' : PEAL_WORDS.has(match[2]) ? 'w' : '';
    if (!kind) continue;
    if (match.index > last) parts.push(text.slice(last, match.index));
    parts.push(el('span', { class: kind }, match[0]));
    last = match.index + match[0].length;
  }
  if (last < text.length || parts.length === 0) parts.push(text.slice(last));
  return parts;
}
