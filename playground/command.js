#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// The command in WebAssembly under node: `node command.js verify allreduce_ring -n 2..8`. peal.js and peal.wasm are beside it.
// The host's folders are mounted under their own names, so that paths mean what they mean outside.
'use strict';
const fs = require('fs');
const path = require('path');
const createPeal = require('./peal.js');

function mountHost(FS, root) {
  if (path.sep !== '/') { // paths with drives do not fit: only the current folder is seen
    FS.mkdir('/here');
    FS.mount(FS.filesystems.NODEFS, { root }, '/here');
    FS.chdir('/here');
    return;
  }
  for (const entry of fs.readdirSync('/', { withFileTypes: true })) {
    const at = '/' + entry.name;
    if (!entry.isDirectory() || ['/dev', '/proc', '/sys'].includes(at)) continue;
    FS.mkdirTree(at);
    FS.mount(FS.filesystems.NODEFS, { root: at }, at);
  }
  FS.chdir(root);
}

// Before the program starts: it reads its variables once. To it, everything is a terminal.
function setVariables({ ENV }) {
  for (const name of ['NO_COLOR', 'TERM', 'COLUMNS', 'TMPDIR']) if (process.env[name]) ENV[name] = process.env[name];
  if (!process.stdout.isTTY) ENV.NO_COLOR = '1';
  else if (!ENV.COLUMNS) ENV.COLUMNS = String(process.stdout.columns);
}

async function main() {
  const program = await createPeal({
    thisProgram: 'peal',
    wasmBinary: fs.readFileSync(path.join(__dirname, 'peal.wasm')),
    print: text => fs.writeSync(1, text + '\n'),
    printErr: text => fs.writeSync(2, text + '\n'),
    preRun: setVariables,
    quit: (code, thrown) => { throw thrown; },
  });
  mountHost(program.FS, process.cwd());
  process.exitCode = program.callMain(process.argv.slice(2));
}

main().catch(error => {
  if (error && error.name === 'ExitStatus') process.exitCode = error.status;
  else {
    fs.writeSync(2, 'peal: ' + (error && error.message || error) + '\n');
    process.exitCode = 3;
  }
});
