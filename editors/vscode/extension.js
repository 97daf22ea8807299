// SPDX-License-Identifier: Apache-2.0
// Starts `peal lsp` for texts in Peal. Everything else is the server's: the lenses' commands are executed there, and what
// they print is shown as a document beside the text.
const vscode = require("vscode");
const { LanguageClient, RevealOutputChannelOn } = require("vscode-languageclient/node");

let client;

async function activate(context) {
    const settings = vscode.workspace.getConfiguration("peal");
    const args = settings.get("proveInBackground") ? ["lsp"] : ["lsp", "--no-proofs"];
    const server = { command: settings.get("path"), args };
    client = new LanguageClient("peal", "Peal", { run: server, debug: server }, {
        documentSelector: [{ language: "peal" }],
        revealOutputChannelOn: RevealOutputChannelOn.Never,
    });
    try {
        await client.start();
    } catch (error) {
        vscode.window.showErrorMessage(`'${server.command} lsp' does not start: ${error.message}. The setting peal.path names the command.`);
    }
}

function deactivate() {
    return client && client.stop();
}

module.exports = { activate, deactivate };
