// SPDX-License-Identifier: Apache-2.0
// A counterexample step by step: the list of steps, and what cells and memory hold after each.

// The state after `done` steps, by replay. Memory is a list of ranges {from, to, value}; value 0 is unset.
function stateAfter(steps, done) {
  const state = {
    memory: steps.memories.map(memory => [{ from: 0, to: memory.bytes, value: 0, step: -1 }]),
    cells: steps.cells.map(cell => ({ value: cell.initial, before: cell.initial, step: -1 })),
  };
  steps.initial.forEach(change => applyChange(state, change, -1));
  for (let i = 0; i < done; i++) steps.list[i].changes.forEach(change => applyChange(state, change, i));
  return state;
}

function applyChange(state, change, step) {
  if (change.memory < 0) {
    const cell = state.cells[change.cell];
    if (cell) Object.assign(cell, { before: cell.value, value: change.value, step });
    return;
  }
  const pieces = [];
  for (const piece of state.memory[change.memory]) {
    if (piece.to <= change.from || piece.from >= change.to) {
      pieces.push(piece);
      continue;
    }
    if (piece.from < change.from) pieces.push({ ...piece, to: change.from });
    if (piece.to > change.to) pieces.push({ ...piece, from: change.to });
  }
  pieces.push({ from: change.from, to: change.to, value: change.value, step: change.quiet ? -1 : step });
  state.memory[change.memory] = pieces.sort((a, b) => a.from - b.from);
}

class StepPlayer {
  constructor(model, diagram, source) {
    this.model = model;
    this.diagram = diagram;
    this.source = source;
    this.done = 0;
    this.timer = 0;
    this.accepts = () => true;
    const { list } = model.steps;
    this.lanes = list.some(step => step.lane > 0);
    this.launches = list.some(step => step.launch > 0);
    this.items = list.map((step, i) => el('li', {
      class: step.flags & FLAG_BAD ? 'bad' : '', onclick: () => this.go(i + 1),
    }, el('span', { class: 'number' }, String(i + 1)), el('span', { class: 'badge' }, this.who(step)),
    el('span', { class: 'what mono' }, model.texts[step.label]), el('span', { class: 'line' }, this.lineText(step))));
    this.element = el('ol', { class: 'steps', 'aria-label': 'Steps of the counterexample', tabindex: 0 }, ...this.items);
    source.setBad(list.filter(step => step.flags & FLAG_BAD).map(step => step.place));
    this.listen();
  }

  who(step) {
    return 'rank ' + step.rank + (this.lanes ? '.' + step.lane : '') + (this.launches ? ' launch ' + step.launch : '');
  }

  lineText(step) {
    const at = this.model.places[step.place];
    return step.place && at.source >= 0 ? 'line ' + at.line : '';
  }

  listen() {
    byId('step-slider').max = this.items.length;
    byId('step-slider').addEventListener('input', event => this.go(Number(event.target.value)));
    byId('step-first').addEventListener('click', () => this.go(0));
    byId('step-back').addEventListener('click', () => this.go(this.done - 1));
    byId('step-next').addEventListener('click', () => this.go(this.done + 1));
    byId('step-last').addEventListener('click', () => this.go(this.items.length));
    byId('step-play').addEventListener('click', () => this.play());
  }

  play() {
    if (this.timer) return this.pause();
    if (this.done >= this.items.length) this.go(0);
    byId('step-play').setAttribute('aria-label', 'Pause');
    byId('step-play').classList.add('playing');
    this.timer = setInterval(() => {
      this.advance(this.done + 1);
      if (this.done >= this.items.length) this.pause();
    }, 900);
  }

  pause() {
    clearInterval(this.timer);
    this.timer = 0;
    byId('step-play').setAttribute('aria-label', 'Play');
    byId('step-play').classList.remove('playing');
  }

  go(done) {
    this.pause();
    this.advance(done);
  }

  advance(done) {
    const { list } = this.model.steps;
    this.done = Math.max(0, Math.min(list.length, done));
    const step = list[this.done - 1];
    byId('step-slider').value = this.done;
    byId('step-count').textContent = this.done + ' of ' + list.length;
    byId('step-back').disabled = byId('step-first').disabled = this.done === 0;
    byId('step-next').disabled = byId('step-last').disabled = this.done === list.length;
    const text = step ? this.who(step) + ': ' + this.model.texts[step.label] : 'before the first step';
    byId('step-text').textContent = text;
    byId('step-text').className = step && step.flags & FLAG_BAD ? 'bad' : '';
    this.items.forEach((item, i) => {
      item.classList.toggle('future', i >= this.done);
      if (i === this.done - 1) item.setAttribute('aria-current', 'step');
      else item.removeAttribute('aria-current');
    });
    if (step) {
      const item = this.items[this.done - 1], box = this.element.parentElement;
      if (box) {
        const top = item.offsetTop - box.offsetTop;
        if (top < box.scrollTop || top > box.scrollTop + box.clientHeight - 40) box.scrollTop = top - box.clientHeight / 2;
      }
    }
    this.source.light(step ? step.place : 0);
    this.diagram.cursor = this.done;
    const bar = step ? this.diagram.barNear(step.track, this.done - 0.5) : -1;
    this.diagram.selected = bar;
    if (step) this.diagram.reveal(this.done - 1, this.done, step.track);
    else this.diagram.draw();
    announce('step ' + this.done + ' of ' + list.length + ': ' + text + (step ? ' ' + this.lineText(step) : ''));
    this.showState();
  }

  showState() {
    const { steps } = this.model;
    const state = stateAfter(steps, this.done);
    const ranks = [...new Set([...steps.memories, ...steps.cells].map(thing => thing.rank))].sort((a, b) => a - b);
    replace(byId('state'), ...ranks.filter(this.accepts).map(rank => this.rankCard(rank, state)));
  }

  rankCard(rank, state) {
    const { steps, texts } = this.model;
    const step = steps.list[this.done - 1];
    const acts = step && step.rank === rank;
    const last = steps.list.slice(0, this.done).filter(other => other.rank === rank).pop();
    const cells = steps.cells.map((cell, i) => ({ cell, now: state.cells[i] })).filter(({ cell }) => cell.rank === rank)
      .sort((a, b) => texts[a.cell.name].localeCompare(texts[b.cell.name], 'en', { numeric: true }));
    return el('section', {
      class: 'rank' + (acts ? ' acts' : '') + (acts && step.flags & FLAG_BAD ? ' bad' : ''), 'aria-label': 'rank ' + rank,
    }, el('h3', {}, 'rank ' + rank, el('small', { class: 'mono' }, last ? texts[last.label] : 'not started')),
    cells.length ? el('div', { class: 'cells' }, ...cells.map(({ cell, now }) => this.cellChip(cell, now))) : null,
    ...steps.memories.map((memory, i) => memory.rank === rank ? this.memoryStrip(memory, i, state.memory[i]) : null));
  }

  cellChip(cell, now) {
    const { texts } = this.model;
    const changed = this.done > 0 && now.step === this.done - 1;
    return el('span', { class: 'cell' + (changed ? ' changed' : '') }, el('span', { class: 'mono' }, texts[cell.name]),
      el('b', {}, changed ? texts[now.before] + ' → ' + texts[now.value] : texts[now.value]));
  }

  memoryStrip(memory, index, pieces) {
    const { texts } = this.model;
    const percent = value => (memory.bytes ? value / memory.bytes * 100 : 0) + '%';
    const range = (from, to) => memory.element > 1 && from % memory.element === 0 && to % memory.element === 0
      ? '[' + from / memory.element + ' .. ' + to / memory.element + ')' : 'bytes ' + from + ' .. ' + to;
    const strip = el('div', { class: 'strip mono' }, ...pieces.filter(piece => piece.to > piece.from).map(piece => el('span', {
      class: piece.value ? (this.done > 0 && piece.step === this.done - 1 ? 'changed' : '') : 'unset',
      style: { left: percent(piece.from), width: percent(piece.to - piece.from) },
      title: range(piece.from, piece.to) + ' ' + (piece.value ? texts[piece.value] : 'not written yet'),
    }, piece.value ? texts[piece.value] : '')));
    return el('div', { class: 'memory' },
      el('div', {}, el('span', { class: 'name mono' }, texts[memory.name]), el('span', {}, formatBytes(memory.bytes))),
      strip, el('div', { class: 'marks mono' }, ...this.marks(index, memory, percent, range),
        ...pieces.filter(piece => this.done > 0 && piece.step === this.done - 1).slice(0, 8).map(piece =>
          el('div', { class: 'becomes' }, range(piece.from, piece.to) + ' = ' + texts[piece.value]))));
  }

  // The accesses of this step, and every colliding one up to here.
  marks(index, memory, percent, range) {
    const marks = [];
    this.model.steps.list.slice(0, this.done).forEach((step, i) => {
      for (const access of step.accesses) {
        if (access.memory !== index) continue;
        const now = i === this.done - 1, bad = access.flags & FLAG_BAD;
        if (!now && !bad) continue;
        const late = memory.bytes > 0 && access.from / memory.bytes > 0.2; // in that case the text goes to the right edge
        marks.push(el('div', { class: 'mark' + (bad ? ' bad' : '') + (now ? '' : ' past') },
          el('i', { style: { 'margin-left': percent(access.from), width: percent(access.to - access.from) } }),
          el('span', late ? { class: 'late' } : { style: { 'margin-left': percent(access.from) } },
            'rank ' + step.rank + ' ' + ACCESS_KINDS[access.kind] + 's ' + range(access.from, access.to))));
      }
    });
    return marks;
  }
}
