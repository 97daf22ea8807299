// SPDX-License-Identifier: Apache-2.0
// The playground: puts the parts together. Start reading here.
//
//   index.html, style.css   the frame                          editor.js     the text; language.js colours it
//   runner.js, worker.js    run the command in a worker        gallery.js    examples; catalogue.py makes them
//   share.js                links that contain the text        command.js    the same program under node
//
// Nothing here knows what a kernel means: `peal check`, `verify`, `sim` and `show` do, and the pages that they write are shown as
// they are. scripts/playground builds all of it.

import { Editor } from './editor.js';
import { catalogue, findExample, prepareGallery, storyElements } from './gallery.js';
import { byId, el, replace } from './dom.js';
import { Runner, Stopped } from './runner.js';
import { readLink, writeLink } from './share.js';

const FILE = 'kernel.peal', PAGE = 'page.html', FIXED = 'fixed.peal';
const MAX_SECONDS = 300;  // then a command is stopped
const MAX_CHECKED = 200000; // letters: longer texts are not checked while they are typed
const FIELDS = ['ranks', 'count', 'machine', 'sim-ranks', 'sim-count', 'options'];
const HELP_KEYS = [['Ctrl Enter', 'prove'], ['Ctrl Shift Enter', 'simulate'], ['Escape', 'stop what is running; in the text: then Tab leaves it'],
  ['Ctrl O', 'examples'], ['Ctrl S', 'copy a link that contains the text'], ['F8', 'next error'], ['Ctrl Space', 'complete a word'], ['F1', 'this help']];

class Playground {
  constructor() {
    this.runner = new Runner();
    this.checker = new Runner(); // of its own, so that typing does not wait for a proof
    this.editor = new Editor(byId('editor'), '', text => this.check(text), () => this.changed());
    this.openGallery = prepareGallery(item => this.load(item));
    replace(byId('machine'), ...catalogue.machines.map(({ name, about }) => el('option', { value: name, title: about }, name)));
    byId('machine').value = 'mesh4x4';
    this.setTheme(preferredTheme());
    this.fillHelp();
    this.listen();
    this.start();
  }

  async start() {
    try {
      const state = await readLink(location.hash);
      if (state) {
        this.setState(state);
        return;
      }
    } catch (error) {
      this.load(findExample('tutorial/1'));
      this.say('unsure', 'no link', 'The link cannot be read (' + error.message + '); this is the first example instead.');
      return;
    }
    this.load(findExample(decodeURIComponent(location.hash.slice(1))) || findExample('tutorial/1'));
  }

  // Texts.

  async load(item) {
    this.stop();
    let { text } = item;
    if (item.kernel) {
      this.say('neutral', '', 'Loading ' + item.kernel + ' ...');
      text = (await this.checker.run(['show', item.kernel], {})).out;
    }
    for (const field of FIELDS) byId(field).value = (item.settings || {})[field] ?? (field === 'machine' ? 'mesh4x4' : byId(field).defaultValue);
    this.setText(text, item.title);
    replace(byId('story'), ...storyElements(item.story));
    this.clearResult();
    this.say('neutral', '', item.hint || 'Press Prove.');
  }

  setText(text, name) {
    byId('name').textContent = name;
    byId('name').title = name;
    this.kernels = [];
    this.showKernels();
    this.editor.text = text;
  }

  setState(state) {
    for (const field of FIELDS) if (field in state) byId(field).value = state[field];
    this.setText(state.text, state.name || 'a kernel from a link');
    replace(byId('story'), ...storyElements('This text came with the link. Press **Prove**.'));
    this.clearResult();
    this.say('neutral', '', 'This text came with the link. Press Prove.');
  }

  changed() {
    if (location.hash) history.replaceState(null, '', location.pathname + location.search);
  }

  async share() {
    const state = { text: this.editor.text, name: byId('name').textContent };
    for (const field of FIELDS) state[field] = byId(field).value;
    const link = await writeLink(state);
    history.replaceState(null, '', link);
    let copied = true;
    try {
      await navigator.clipboard.writeText(location.href);
    } catch (error) {
      copied = false;
    }
    this.say('neutral', '', copied ? 'The link is copied: ' + formatBytes(location.href.length) + ', with the text in it.'
      : 'The address of this page now contains the text: copy it from there.');
  }

  // Diagnostics while typing, and the names of the kernels.
  async check(text) {
    if (text.length > MAX_CHECKED) return [];
    this.checker.stop();
    try {
      const [{ kernels, diagnostics }] = JSON.parse((await this.checker.run(['check', '--json', FILE], { [FILE]: text })).out);
      if (kernels.length) {
        this.kernels = kernels.map(kernel => kernel.name);
        this.showKernels();
      }
      return diagnostics;
    } catch (error) { // stopped by the next check, or the program could not be loaded: the buttons report that
      return [];
    }
  }

  showKernels() {
    const select = byId('kernel'), chosen = select.value;
    byId('kernel-label').hidden = this.kernels.length < 2;
    replace(select, ...this.kernels.map(name => el('option', {}, name)));
    select.value = this.kernels.includes(chosen) ? chosen : this.kernels[this.kernels.length - 1] || '';
  }

  // Commands.

  kernelOption() {
    return this.kernels.length > 1 && byId('kernel').value ? ['--kernel', byId('kernel').value] : [];
  }

  option(name, field) {
    const value = byId(field).value.replace(/\s+/g, '');
    return value ? [name, value] : [];
  }

  more() {
    return byId('options').value.split(/\s+/).filter(Boolean);
  }

  prove() {
    const args = ['verify', FILE, ...this.kernelOption(), ...this.option('--ranks', 'ranks'), ...this.option('--count', 'count'),
      '--jobs', '1', '--no-cache', '--memory', '1G', '--html', PAGE, ...this.more()];
    this.run('Proving', args, answer => this.showVerdict(answer));
  }

  simulate() {
    const args = ['sim', FILE, ...this.kernelOption(), '--machine', byId('machine').value, ...this.option('--ranks', 'sim-ranks'),
      ...this.option('--count', 'sim-count'), '--html', PAGE, ...this.more()];
    this.run('Simulating', args, answer => this.showRun(answer));
  }

  fix() {
    const args = ['verify', FILE, ...this.kernelOption(), ...this.option('--ranks', 'ranks'), '--jobs', '1', '--no-cache', '--memory', '1G', '--fix', '--output', FIXED];
    this.run('Looking for a fix', args, answer => this.showFix(answer), FIXED);
  }

  async format() {
    const { code, out, err } = await this.checker.run(['fmt', FILE], { [FILE]: this.editor.text }, [FILE]).catch(error => ({ code: 3, out: '', err: error.message }));
    if (code === 0 && out) this.editor.text = out + '\n';
    else this.showText('unsure', 'not read', err);
  }

  async run(what, args, show, wanted = PAGE) {
    if (this.running) return;
    const start = performance.now();
    this.begin(what, start);
    let answer;
    try {
      answer = await this.runner.run(args, { [FILE]: this.editor.text }, [wanted]);
    } catch (error) {
      answer = { failed: error };
    }
    this.finish();
    answer.seconds = (performance.now() - start) / 1000;
    if (answer.failed) this.showFailure(answer);
    else if (answer.code === null) this.showCrash(answer);
    else show(answer);
  }

  begin(what, start) {
    this.running = true;
    byId('prove').disabled = byId('simulate').disabled = true;
    byId('stop').hidden = false;
    byId('fix').hidden = true;
    const tick = () => {
      const seconds = Math.floor((performance.now() - start) / 1000);
      const hint = seconds >= 10 ? ' Fewer ranks, one count or --quick take less time.' : '';
      this.say('neutral', '', what + ' ...' + (seconds ? ' ' + seconds + ' s.' : '') + hint);
      if (seconds >= MAX_SECONDS) this.runner.end(new Error('stopped after ' + MAX_SECONDS + ' s, the limit of this page; the command has none'));
    };
    tick();
    this.timer = setInterval(tick, 1000);
  }

  finish() {
    clearInterval(this.timer);
    this.running = false;
    byId('prove').disabled = byId('simulate').disabled = false;
    byId('stop').hidden = true;
  }

  stop() {
    if (this.running) this.runner.stop();
  }

  // Results.

  showVerdict(answer) {
    const words = { 0: ['good', 'proved'], 1: ['bad', 'refuted'], 2: ['unsure', 'not understood'], 3: ['unsure', answer.out ? 'not decided' : 'not read'] }[answer.code];
    this.show(answer, words);
    byId('fix').hidden = answer.code !== 1;
  }

  showRun(answer) {
    const words = { 0: ['good', 'simulated'], 1: ['bad', 'goes wrong'], 2: ['unsure', 'not understood'], 3: ['unsure', 'no result'] }[answer.code];
    this.show(answer, words);
  }

  show({ code, out, err, files, seconds }, [tone, verdict]) {
    const page = files[PAGE];
    this.setOutput(out + (err ? (out ? '\n\n' : '') + err : ''));
    this.setPage(page);
    this.say(tone, verdict, this.summary(code, out, err) + ' (' + formatSeconds(seconds) + ')');
    this.showTab(page ? 'page' : 'text');
    if (byId('right').offsetTop > byId('left').offsetTop) byId('right').scrollIntoView({ block: 'start' });
  }

  // One sentence: the line of the time, that of the fault, or the first error.
  summary(code, out, err) {
    const time = out.match(/^time +(.*?)(?: \(\d+ ps\))?$/m), fault = out.match(/^(\S+: (?:refuted|proved|not decided|sampled)[^\n]*(?:\n {2}\S[^\n]*)?)/m);
    const error = err.match(/^(?:[\w.]+:(\d+):\d+: )?error: (.*(?:\n {2}\S.*)*)/m) || err.match(/()(?:error: )([\s\S]*)/);
    if (code >= 2 && error) return (error[1] ? 'line ' + error[1] + ': ' : '') + error[2].trim().replace(/\s*\n\s*/g, ' ');
    if (time) return time[1];
    if (!fault) return '';
    return fault[1].replace(/\s*\n\s*/g, ' ').replace(/^\S+: (refuted|proved|not decided|sampled),? ?/, '').replace(' in ' + FILE, '').replace(/[,;:]? *$/, '');
  }

  showFix({ code, out, err, files, seconds }) {
    const fixed = files[FIXED];
    this.setOutput(out + (err ? '\n' + err : ''));
    this.showTab('text');
    if (code === 0 && fixed) {
      this.editor.text = fixed;
      this.say('good', 'fixed', 'The text is changed as shown, and proved (' + formatSeconds(seconds) + '). Ctrl+Z takes it back.');
    } else {
      this.say('unsure', 'no fix', 'None of the changes that were tried proves it (' + formatSeconds(seconds) + ').');
    }
  }

  showFailure({ failed, seconds }) {
    const by = failed instanceof Stopped ? 'Stopped after ' + formatSeconds(seconds) + '. Nothing was found out.' : failed.message;
    this.showText('unsure', failed instanceof Stopped ? 'stopped' : 'failed', by);
  }

  showCrash({ memory, out, err }) {
    this.setOutput([out, err].filter(Boolean).join('\n'));
    this.showTab('text');
    this.say('unsure', memory ? 'out of memory' : 'failed', memory
      ? 'This needs more than the 2 GB of memory that a page can have. Fewer ranks or a smaller count need less; the command has no such limit.'
      : 'The program has failed: this is a defect of Peal. The text has its last words.');
  }

  showText(tone, verdict, text) {
    this.setOutput(text);
    this.setPage('');
    this.say(tone, verdict, text.split('\n')[0]);
    this.showTab('text');
  }

  setOutput(text) {
    byId('text').textContent = text;
    byId('tab-text').disabled = !text;
  }

  setPage(page) {
    const frame = byId('page');
    byId('tab-page').disabled = !page;
    frame.srcdoc = page || '';
    frame.onload = () => { if (page) this.passTheme(); };
  }

  clearResult() {
    this.setOutput('');
    this.setPage('');
    byId('fix').hidden = true;
    this.showTab('story');
  }

  say(tone, verdict, message) {
    byId('status').className = 'tone-' + tone;
    byId('verdict').textContent = verdict;
    byId('message').textContent = message;
  }

  showTab(name) {
    for (const one of ['story', 'page', 'text']) {
      byId(one).hidden = one !== name;
      byId('tab-' + one).setAttribute('aria-selected', String(one === name));
      byId('tab-' + one).tabIndex = one === name ? 0 : -1;
    }
  }

  // Theme: that of the pages, and kept with theirs.

  setTheme(theme) {
    document.documentElement.dataset.theme = theme;
    this.passTheme();
  }

  passTheme() {
    const shown = byId('page').contentWindow;
    if (shown && shown.pealPage) shown.pealPage.setTheme(document.documentElement.dataset.theme);
  }

  toggleTheme() {
    const theme = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
    try {
      localStorage.setItem('peal-theme', theme);
    } catch (error) { /* a page opened from disk may have no storage */ }
    this.setTheme(theme);
  }

  // Events.

  fillHelp() {
    replace(byId('help-text'),
      el('p', {}, 'The left side is a kernel: what every rank of a group does. Prove examines all schedules, however ranks overtake each other; Simulate computes how long it takes on a modelled machine. ' +
        'Both run in this browser and send nothing anywhere.'),
      el('p', {}, 'Ranks may be a list (2..8), or all: every number of ranks, where Peal can do that without an SMT solver. A proof that takes long can be stopped. ' +
        'Machines are models with placeholder figures, not measurements of any chip.'),
      el('p', {}, 'More options are those of peal verify and peal sim: --advice, --launches 1, --order pairwise, --type f16, --set capacity=64.'),
      el('h3', {}, 'Keys'),
      el('table', {}, ...HELP_KEYS.map(([key, does]) => el('tr', {}, el('td', {}, ...key.split(' ').map(one => el('kbd', {}, one))), el('td', {}, does)))),
      el('p', {}, 'The picture has keys of its own: ? shows them.'));
  }

  listen() {
    byId('controls').addEventListener('submit', event => { event.preventDefault(); this.prove(); });
    byId('simulate').addEventListener('click', () => this.simulate());
    byId('stop').addEventListener('click', () => this.stop());
    byId('fix').addEventListener('click', () => this.fix());
    byId('format-button').addEventListener('click', () => this.format());
    byId('examples-button').addEventListener('click', () => this.openGallery());
    byId('share-button').addEventListener('click', () => this.share());
    byId('theme-button').addEventListener('click', () => this.toggleTheme());
    byId('help-button').addEventListener('click', () => byId('help').showModal());
    for (const dialog of document.querySelectorAll('dialog')) dialog.querySelector('.close').addEventListener('click', () => dialog.close());
    const tabs = ['story', 'page', 'text'];
    for (const name of tabs) byId('tab-' + name).addEventListener('click', () => this.showTab(name));
    byId('tabs').addEventListener('keydown', event => {
      const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const open = tabs.filter(name => !byId('tab-' + name).disabled);
      if (!move) return;
      const next = open[(open.findIndex(name => byId('tab-' + name) === event.target) + move + open.length) % open.length];
      this.showTab(next);
      byId('tab-' + next).focus();
    });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.setTheme(preferredTheme()));
    document.addEventListener('keydown', event => this.onKey(event), true);
    window.addEventListener('hashchange', () => this.start());
  }

  onKey(event) {
    const command = event.ctrlKey || event.metaKey;
    if (event.key === 'F1') byId('help').showModal();
    else if (event.key === 'Escape' && this.running) this.stop();
    else if (command && event.key === 'Enter') event.shiftKey ? this.simulate() : this.prove();
    else if (command && event.key === 'o') this.openGallery();
    else if (command && event.key === 's') this.share();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

function formatSeconds(seconds) {
  return seconds < 10 ? seconds.toFixed(1) + ' s' : Math.round(seconds) + ' s';
}

function formatBytes(bytes) {
  return bytes < 1000 ? bytes + ' bytes' : (bytes / 1000).toFixed(1) + ' kB';
}

function preferredTheme() {
  let chosen = null;
  try {
    chosen = localStorage.getItem('peal-theme');
  } catch (error) { /* as above */ }
  if (chosen === 'light' || chosen === 'dark') return chosen;
  return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
}

window.playground = new Playground(); // for tests and inspection
