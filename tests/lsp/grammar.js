// SPDX-License-Identifier: Apache-2.0
// The tree-sitter grammar without tree-sitter: its rules are read as a context-free grammar, and an Earley parser says of each
// text whether it is in the language. Precedences choose between trees and do not change the answer.
//
//   node grammar.js GRAMMAR.js FILE...    prints TAP: every file is accepted; with one token left out, what is accepted is counted
const fs = require("fs");
const path = require("path");

// ---- the DSL of tree-sitter: rules as {type, ...} ----
const rule = r => typeof r === "string" || r instanceof RegExp ? { type: "token", of: r } : r;
const rules = {};
global.seq = (...all) => ({ type: "seq", of: all.map(rule) });
global.choice = (...all) => ({ type: "choice", of: all.map(rule) });
global.repeat = r => ({ type: "repeat", of: rule(r) });
global.repeat1 = r => global.seq(r, global.repeat(r));
global.optional = r => global.choice(r, global.seq());
global.token = r => rule(r);
global.field = (name, r) => rule(r);
global.alias = (r, name) => rule(r);
global.prec = (level, r) => rule(r);
for (const name of ["left", "right", "dynamic"])
    global.prec[name] = (level, r) => rule(r === undefined ? level : r);
global.grammar = definition => definition;

const definition = require(path.resolve(process.argv[2]));
const used = new Set();
const symbols = new Proxy({}, { get: (_, name) => (used.add(name), { type: "symbol", of: name }) });
for (const [name, make] of Object.entries(definition.rules))
    rules[name] = rule(make(symbols));
const terminals = new Set(["name", "number", "string"]);

// ---- productions: {head: [[symbol or {text}]]} ----
const productions = {};
let made = 0;
function flatten(r) {
    if (r.type === "token" || r.type === "symbol")
        return [r];
    const head = "#" + made++;
    if (r.type === "seq")
        productions[head] = [r.of.flatMap(flatten)];
    else if (r.type === "choice")
        productions[head] = r.of.map(flatten);
    else
        productions[head] = [[], [...flatten(r.of), { type: "symbol", of: head }]];
    return [{ type: "symbol", of: head }];
}
for (const [name, r] of Object.entries(rules))
    if (!terminals.has(name) && name !== "comment")
        productions[name] = [flatten(r)];

const TOKEN = /\/\/[^\n]*|"(?:\\.|[^"\\\n])*"|[A-Za-z_]\w*|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|<<|>>|<=|>=|==|!=|\+=|\+:|\.\.|\S/g;
const tokens = text => (text.match(TOKEN) || []).filter(t => !t.startsWith("//"));
const reserved = new Set(require(path.join(path.dirname(path.resolve(process.argv[2])), "words.js")).reserved);

function fits(terminal, token) {
    if (terminal.type === "token")
        return terminal.of === token;
    if (terminal.of === "name")
        return /^[A-Za-z_]/.test(token) && !reserved.has(token);
    return terminal.of === "number" ? /^\d/.test(token) : token[0] === '"';
}

const nullable = new Set();
for (let grew = true; grew;) {
    grew = false;
    for (const [head, bodies] of Object.entries(productions))
        if (!nullable.has(head) && bodies.some(b => b.every(s => s.type === "symbol" && nullable.has(s.of))))
            grew = nullable.add(head), true;
}

// True, or the number of the token at which it ends.
function accepts(list) {
    let sets = [new Map()];
    const add = (set, head, body, dot, from) => {
        const key = `${head} ${body} ${dot} ${from}`;
        if (!set.has(key))
            set.set(key, { head, body, dot, from });
    };
    const all = [sets[0]];
    productions.module.forEach((_, i) => add(all[0], "module", i, 0, 0));
    for (let at = 0; at <= list.length; at++) {
        all[at + 1] = new Map();
        for (const item of all[at].values()) {
            const next = productions[item.head][item.body][item.dot];
            if (!next) {
                for (const waiting of all[item.from].values()) {
                    const wanted = productions[waiting.head][waiting.body][waiting.dot];
                    if (wanted && wanted.type === "symbol" && wanted.of === item.head)
                        add(all[at], waiting.head, waiting.body, waiting.dot + 1, waiting.from);
                }
            } else if (next.type === "symbol" && productions[next.of]) {
                productions[next.of].forEach((_, i) => add(all[at], next.of, i, 0, at));
                if (nullable.has(next.of))
                    add(all[at], item.head, item.body, item.dot + 1, item.from);
            } else if (at < list.length && fits(next, list[at])) {
                add(all[at + 1], item.head, item.body, item.dot + 1, item.from);
            }
        }
        if (at < list.length && !all[at + 1].size)
            return at;
    }
    const done = [...all[list.length].values()].some(i => i.head === "module" && i.from === 0 && !productions.module[i.body][i.dot]);
    return done || list.length;
}

let number = 0, failed = 0;
function check(name, good, why) {
    console.log(`${good ? "ok" : "not ok"} ${++number} - ${name}`);
    if (!good)
        console.log("# " + why), failed++;
}

const unknown = [...used].filter(name => !rules[name] && !["keyword", "type", "contract", "operator"].includes(name));
check("every rule that is named exists", !unknown.length, unknown.join(" "));
let cut = 0, refused = 0;
for (const file of process.argv.slice(3)) {
    const list = tokens(fs.readFileSync(file, "utf8"));
    const end = accepts(list);
    check(`${file} is accepted`, end === true, `ends at ${list.slice(Math.max(0, end - 8), end + 3).join(" ")}`);
    for (let i = 7; i < list.length; i += 97) {
        cut++;
        refused += accepts(list.filter((_, k) => k !== i)) !== true;
    }
}
check("most texts that lack a token are refused", refused > cut / 2, `${refused} of ${cut}`);
console.log(`1..${number}`);
process.exit(failed ? 1 : 0);
