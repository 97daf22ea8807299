// SPDX-License-Identifier: Apache-2.0
// node protocol.js PEAL KERNELS    prints TAP
const { spawn } = require("child_process");
const fs = require("fs");
const path = require("path");
const lsp = require("vscode-languageserver-protocol/node");

const [peal, kernels] = process.argv.slice(2);
const child = spawn(peal, ["lsp", "--no-proofs"], { stdio: ["pipe", "pipe", "inherit"] });
const connection = lsp.createProtocolConnection(new lsp.StreamMessageReader(child.stdout), new lsp.StreamMessageWriter(child.stdin));
const published = new Map();
let number = 0, failed = 0;

function check(name, good, why) {
    console.log(`${good ? "ok" : "not ok"} ${++number} - ${name}`);
    if (!good)
        console.log("# " + JSON.stringify(why)), failed++;
}

// Every range of an answer is one, and every array of the library's own type holds what it should.
function ranges(value, found = []) {
    if (lsp.Range.is(value))
        found.push(value);
    else if (value && typeof value === "object")
        Object.values(value).forEach(part => ranges(part, found));
    return found;
}

async function main() {
    connection.onNotification(lsp.PublishDiagnosticsNotification.type, params => published.set(params.uri, params.diagnostics));
    connection.listen();
    const initialized = await connection.sendRequest(lsp.InitializeRequest.type, { processId: process.pid, rootUri: null, capabilities: {} });
    check("initialize", initialized.serverInfo.name === "peal" && initialized.capabilities.textDocumentSync.change === lsp.TextDocumentSyncKind.Incremental, initialized);
    await connection.sendNotification(lsp.InitializedNotification.type, {});
    for (const name of fs.readdirSync(kernels).filter(n => n.endsWith(".peal")).sort()) {
        const uri = "file://" + path.join(kernels, name), textDocument = { uri };
        const text = fs.readFileSync(path.join(kernels, name), "utf8");
        const document = lsp.TextDocumentItem.create(uri, "peal", 1, text);
        await connection.sendNotification(lsp.DidOpenTextDocumentNotification.type, { textDocument: document });
        const index = text.indexOf("kernel ") + 8, lines = text.slice(0, index).split("\n");
        const position = { line: lines.length - 1, character: lines[lines.length - 1].length };
        const ask = (request, more) => connection.sendRequest(request.type, { textDocument, position, ...more });
        const hover = await ask(lsp.HoverRequest);
        check(`${name}: hover`, lsp.Hover.is(hover), hover);
        const symbols = await ask(lsp.DocumentSymbolRequest);
        check(`${name}: symbols`, symbols.length > 0 && symbols.every(s => lsp.DocumentSymbol.is(s)), symbols);
        const items = await ask(lsp.CompletionRequest);
        check(`${name}: completion`, items.every(i => typeof i.label === "string" && i.kind >= 1 && i.kind <= 25), items[0]);
        const uses = await ask(lsp.ReferencesRequest, { context: { includeDeclaration: true } });
        check(`${name}: references`, uses.length > 0 && uses.every(u => lsp.Location.is(u)), uses);
        const edit = await ask(lsp.RenameRequest, { newName: "another_name" });
        check(`${name}: rename`, lsp.WorkspaceEdit.is(edit) && edit.changes[uri].every(e => lsp.TextEdit.is(e)), edit);
        const hints = await ask(lsp.InlayHintRequest, { range: lsp.Range.create(0, 0, 100000, 0) });
        check(`${name}: hints`, hints.every(h => lsp.InlayHint.is(h)), hints[0]);
        const lenses = await ask(lsp.CodeLensRequest);
        check(`${name}: lenses`, lenses.every(l => lsp.CodeLens.is(l)) && ranges(lenses).length === lenses.length, lenses[0]);
        const tokens = await ask(lsp.SemanticTokensRequest);
        check(`${name}: tokens`, lsp.SemanticTokens.is(tokens) && tokens.data.length % 5 === 0, tokens);
        const edits = await ask(lsp.DocumentFormattingRequest, { options: { tabSize: 4, insertSpaces: true } });
        check(`${name}: is formatted`, edits.length === 0, edits);
        const changed = { range: { start: position, end: position }, text: " 🔔 " };
        await connection.sendNotification(lsp.DidChangeTextDocumentNotification.type, { textDocument: { uri, version: 2 }, contentChanges: [changed] });
        await ask(lsp.HoverRequest);
        await connection.sendNotification(lsp.DidCloseTextDocumentNotification.type, { textDocument });
    }
    check("every text had its diagnostics", [...published.values()].every(list => list.every(d => lsp.Diagnostic.is(d))), [...published]);
    await connection.sendRequest(lsp.ShutdownRequest.type);
    const ended = new Promise(done => child.on("exit", done));
    await connection.sendNotification(lsp.ExitNotification.type);
    check("exit code", await ended === 0);
    console.log(`1..${number}`);
    process.exit(failed ? 1 : 0);
}

main().catch(error => {
    console.log("Bail out! " + error.message);
    process.exit(1);
});
