// SPDX-License-Identifier: Apache-2.0
// Runs the command in a worker that can be ended at any time. program.js has the program as text (window.pealProgram): a page that
// was opened from disk may load scripts, and nothing else.

function decode64(text) {
  const bytes = atob(text), array = new Uint8Array(bytes.length);
  for (let i = 0; i < bytes.length; i++) array[i] = bytes.charCodeAt(i);
  return array;
}

let compiled; // a promise: compiled once, for all workers

function compile() {
  if (!compiled) {
    compiled = loadProgram().then(async program => {
      const stream = new Blob([decode64(program.wasm)]).stream().pipeThrough(new DecompressionStream('gzip'));
      const module = await WebAssembly.compile(await new Response(stream).arrayBuffer());
      return { module, url: URL.createObjectURL(new Blob([program.worker], { type: 'text/javascript' })) };
    });
  }
  return compiled;
}

function loadProgram() {
  return new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = 'program.js';
    script.addEventListener('load', () => resolve(window.pealProgram));
    script.addEventListener('error', () => reject(new Error('program.js, which has the verifier, could not be loaded: reload the page')));
    document.head.append(script);
  });
}

compile().catch(() => {}); // at once; whoever needs it gets the error

export class Stopped extends Error {}

export class Runner {
  constructor() {
    this.last = 0;
    this.waiting = new Map();
  }

  // {code, out, err, files} of a command. files: name to text, before it; wanted: names of files that it may write.
  async run(args, files, wanted = []) {
    const mine = ++this.last;
    const done = new Promise((resolve, reject) => this.waiting.set(mine, { resolve, reject }));
    try {
      const { module, url } = await compile();
      if (this.waiting.has(mine)) {
        if (!this.worker) this.start(module, url);
        this.worker.postMessage({ id: mine, args, files, wanted });
      }
    } catch (error) {
      this.settle(mine, waiting => waiting.reject(error));
    }
    return done;
  }

  start(module, url) {
    this.worker = new Worker(url);
    this.worker.onmessage = ({ data }) => this.settle(data.id, waiting => waiting.resolve(data));
    this.worker.onerror = event => this.end(new Error(event.message || 'the worker has failed'));
    this.worker.postMessage({ module });
  }

  settle(id, how) {
    const waiting = this.waiting.get(id);
    this.waiting.delete(id);
    if (waiting) how(waiting);
  }

  stop() {
    this.end(new Stopped('stopped'));
  }

  end(error) {
    if (this.worker) this.worker.terminate();
    this.worker = null;
    for (const id of [...this.waiting.keys()]) this.settle(id, waiting => waiting.reject(error));
  }
}
