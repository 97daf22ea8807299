// SPDX-License-Identifier: Apache-2.0
// Peal for programs in JavaScript: each call is a run of the command in memory of its own, with files that are in memory only.
'use strict';
const fs = require('fs');
const path = require('path');
const createPeal = require('./peal.js');

let code; // compiled once
function compiled() {
  code = code || new WebAssembly.Module(fs.readFileSync(path.join(__dirname, 'peal.wasm')));
  return code;
}

/** Runs a command. files: contents by name. Answers with its output, its messages and its exit code. */
async function run(args, files = {}) {
  const output = [], messages = [];
  const program = await createPeal({
    thisProgram: 'peal',
    instantiateWasm: (imports, done) => {
      const instance = new WebAssembly.Instance(compiled(), imports);
      done(instance);
      return instance.exports;
    },
    preRun: ({ ENV }) => { ENV.NO_COLOR = '1'; },
    print: text => output.push(text),
    printErr: text => messages.push(text),
    quit: (status, thrown) => { throw thrown; },
  });
  program.FS.mkdir('/files');
  program.FS.chdir('/files');
  for (const [name, text] of Object.entries(files)) {
    const folder = path.posix.dirname(name);
    if (folder !== '.') program.FS.mkdirTree(folder);
    program.FS.writeFile(name, text);
  }
  let status;
  try {
    status = program.callMain(args.map(String));
  } catch (error) {
    if (!error || error.name !== 'ExitStatus') throw error;
    status = error.status;
  }
  return { output: output.join('\n'), messages: messages.join('\n'), status };
}

/** --name value for each option; true is a flag, an object gives NAME=VALUE for each of its entries. */
function words(options) {
  const all = [];
  for (const [name, value] of Object.entries(options)) {
    const option = '--' + name.replace(/[A-Z]/g, letter => '-' + letter.toLowerCase());
    if (value === true) all.push(option);
    else if (value && typeof value === 'object' && !Array.isArray(value)) {
      for (const [key, one] of Object.entries(value)) all.push(`${option}=${key}=${one}`);
    } else if (value !== false && value !== undefined && value !== null) all.push(`${option}=${value}`);
  }
  return all;
}

/** The command's JSON about a kernel: a text in Peal's language, or the name of a library kernel. */
async function ask(command, kernel, options) {
  const isText = kernel.includes('{');
  const name = isText ? 'kernel.peal' : kernel;
  const answer = await run([command, '--json', ...words(options), '--', name], isText ? { [name]: kernel } : {});
  if (!answer.output.startsWith('{')) throw new Error(answer.messages || answer.output || `exit code ${answer.status}`);
  return JSON.parse(answer.output);
}

module.exports = {
  run,
  verify: (kernel, options = {}) => ask('verify', kernel, options),
  simulate: (kernel, options = {}) => ask('sim', kernel, options),
};
