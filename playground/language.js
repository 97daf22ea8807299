// SPDX-License-Identifier: Apache-2.0
// Peal for the editor: colours and completion, from the words of `peal ops --json` (words.json, made by the build).

import { completeAnyWord } from '@codemirror/autocomplete';
import { HighlightStyle, StreamLanguage, syntaxHighlighting } from '@codemirror/language';
import { tags } from '@lezer/highlight';
import table from './words.json';

const STYLE_OF_ROLE = {
  declaration: 'definitionKeyword', statement: 'controlKeyword', operation: 'operatorKeyword', modifier: 'modifier',
  operator: 'operatorKeyword', function: 'standardFunction', name: 'standardName', port: 'standardName',
};

const styles = new Map();
for (const word of table.words) styles.set(word.name, STYLE_OF_ROLE[word.role] || 'keyword');
for (const name of table.types) styles.set(name, 'typeName');
for (const name of table.contracts) if (!styles.has(name)) styles.set(name, 'typeName');
for (const one of table.functions) if (!styles.has(one.name)) styles.set(one.name, 'standardFunction');

const peal = StreamLanguage.define({
  name: 'peal',
  token(stream) {
    if (stream.eatSpace()) return null;
    if (stream.match('//')) {
      stream.skipToEnd();
      return 'lineComment';
    }
    if (stream.match(/^\d[\w]*(\.\d+)?/)) return 'number';
    const word = stream.match(/^[A-Za-z_]\w*/);
    if (word) return styles.get(word[0]) || 'variableName';
    stream.next();
    return null;
  },
  tokenTable: { standardFunction: tags.standard(tags.function(tags.variableName)), standardName: tags.standard(tags.variableName) },
  languageData: { commentTokens: { line: '//' }, closeBrackets: { brackets: ['(', '[', '{'] }, indentOnInput: /^\s*\}$/ },
});

// The colours are those of the pages' source panel.
const colours = HighlightStyle.define([
  { tag: [tags.definitionKeyword, tags.controlKeyword, tags.operatorKeyword, tags.modifier, tags.keyword], color: 'var(--k-word)' },
  { tag: tags.lineComment, color: 'var(--k-note)' },
  { tag: tags.number, color: 'var(--k-number)' },
  { tag: tags.typeName, color: 'var(--k-number)' },
  { tag: [tags.standard(tags.function(tags.variableName)), tags.standard(tags.variableName)], color: 'var(--accent)' },
]);

const options = table.words.map(word => ({ label: word.name, type: word.role === 'function' ? 'function' : 'keyword', detail: word.syntax, info: word.meaning }));
for (const name of table.types) options.push({ label: name, type: 'type' });
for (const name of table.contracts) options.push({ label: name, type: 'type', detail: 'a contract' });

function complete(context) {
  const word = context.matchBefore(/[A-Za-z_]\w*/);
  if (!word || (word.text.length < 2 && !context.explicit)) return null;
  if (/\/\//.test(context.state.doc.lineAt(context.pos).text.slice(0, word.from - context.state.doc.lineAt(context.pos).from))) return null;
  const known = new Set(options.map(option => option.label));
  const others = completeAnyWord(context);
  const names = others ? others.options.filter(option => !known.has(option.label)) : [];
  return { from: word.from, options: options.concat(names), validFor: /^\w*$/ };
}

export const pealLanguage = [peal, syntaxHighlighting(colours), peal.data.of({ autocomplete: complete })];
