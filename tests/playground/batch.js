// SPDX-License-Identifier: Apache-2.0
// Runs many commands of the WebAssembly build: node batch.js FOLDER <LINES. A line is a JSON array of arguments; the answer is a
// line {code, ms, out, err}. Each command gets an instance, and so memory, of its own; the code is compiled once.
'use strict';
process.setMaxListeners(0); // every instance adds some
const fs = require('fs');
const path = require('path');
const readline = require('readline');
const folder = path.resolve(process.argv[2]);
const createPeal = require(path.join(folder, 'peal.js'));
const compiled = new WebAssembly.Module(fs.readFileSync(path.join(folder, 'peal.wasm')));

async function run(args) {
  const out = [], err = [];
  const program = await createPeal({
    thisProgram: 'peal',
    instantiateWasm: (imports, done) => {
      const instance = new WebAssembly.Instance(compiled, imports);
      done(instance);
      return instance.exports;
    },
    preRun: ({ ENV }) => { ENV.NO_COLOR = '1'; },
    print: text => out.push(text), printErr: text => err.push(text),
    quit: (code, thrown) => { throw thrown; },
  });
  program.FS.mkdir('/top');
  program.FS.mount(program.FS.filesystems.NODEFS, { root: process.cwd() }, '/top');
  program.FS.chdir('/top');
  const start = process.cpuUsage();
  let code;
  try {
    code = program.callMain(args);
  } catch (error) {
    code = error && error.name === 'ExitStatus' ? error.status : String(error && error.stack || error);
  }
  const used = process.cpuUsage(start);
  return { code, ms: (used.user + used.system) / 1000, out: out.join('\n'), err: err.join('\n') };
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    fs.writeSync(1, JSON.stringify(await run(JSON.parse(line))) + '\n');
    global.gc(); // the memory of the instance
  }
}

main();
