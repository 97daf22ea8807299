// SPDX-License-Identifier: Apache-2.0
// The worker: after peal.js in one text. Every command gets an instance of its own, and with it fresh memory and files.
'use strict';

let module;

function outOfMemory(error) {
  return error instanceof RangeError || /memory|Aborted\(OOM\)|out of bounds/i.test(String(error && error.message));
}

async function runCommand({ args, files, wanted }) {
  const out = [], err = [];
  const program = await createPeal({
    thisProgram: 'peal',
    instantiateWasm: (imports, done) => {
      WebAssembly.instantiate(module, imports).then(done);
      return {};
    },
    preRun: ({ ENV }) => Object.assign(ENV, { NO_COLOR: '1', COLUMNS: '80' }),
    print: text => out.push(text), printErr: text => err.push(text),
    quit: (code, thrown) => { throw thrown; },
  });
  for (const [name, text] of Object.entries(files)) program.FS.writeFile(name, text);
  let code;
  try {
    code = program.callMain(args);
  } catch (error) {
    if (error && error.name === 'ExitStatus') code = error.status;
    else return { code: null, memory: outOfMemory(error), out: out.join('\n'), err: err.join('\n') + '\n' + error, files: {} };
  }
  const written = {};
  for (const name of wanted) if (program.FS.analyzePath(name).exists) written[name] = program.FS.readFile(name, { encoding: 'utf8' });
  return { code, out: out.join('\n'), err: err.join('\n'), files: written };
}

let queue = Promise.resolve();

self.onmessage = ({ data }) => {
  if (data.module) module = data.module;
  else queue = queue.then(async () => self.postMessage({ id: data.id, ...await runCommand(data) }));
};
