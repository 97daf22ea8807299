// SPDX-License-Identifier: Apache-2.0
// The text: CodeMirror with Peal's colours, and the command's diagnostics as marks.

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { bracketMatching, indentOnInput, indentUnit } from '@codemirror/language';
import { forceLinting, linter, lintGutter, lintKeymap } from '@codemirror/lint';
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search';
import { EditorState } from '@codemirror/state';
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from '@codemirror/view';
import { pealLanguage } from './language.js';

const look = EditorView.theme({
  '&': { backgroundColor: 'var(--panel)', color: 'var(--text)' },
  '&.cm-focused': { outline: 'none' },
  '.cm-gutters': { backgroundColor: 'var(--panel)', color: 'var(--muted)', border: 'none' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'var(--faint)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'var(--accent-soft)' },
  '.cm-selectionMatch': { backgroundColor: 'var(--unsure-soft)' },
  '&.cm-focused .cm-matchingBracket': { backgroundColor: 'var(--good-soft)', outline: 'none' },
  '.cm-tooltip, .cm-panels': { backgroundColor: 'var(--panel)', color: 'var(--text)', border: '1px solid var(--line)' },
  '.cm-tooltip-autocomplete ul li[aria-selected]': { backgroundColor: 'var(--accent-soft)', color: 'var(--text)' },
  '.cm-textfield, .cm-button': { backgroundColor: 'var(--panel)', color: 'var(--text)', backgroundImage: 'none' },
});

// Columns of diagnostics count bytes of UTF-8; those of the editor, units of UTF-16.
function unitsBefore(line, column) {
  const encoder = new TextEncoder();
  let bytes = 0, units = 0;
  for (const letter of line) {
    if (bytes >= column - 1) break;
    bytes += encoder.encode(letter).length;
    units += letter.length;
  }
  return units;
}

function placeOf(doc, diagnostic) {
  const line = doc.line(Math.min(Math.max(1, diagnostic.line), doc.lines));
  const from = line.from + unitsBefore(line.text, diagnostic.column);
  const to = line.from + unitsBefore(line.text, diagnostic.column + Math.max(1, diagnostic.length));
  return { from: Math.min(from, doc.length), to: Math.min(Math.max(to, from), doc.length) };
}

export class Editor {
  // check(text) gives diagnostics {line, column, length, severity, message}; changed() is called after every change.
  constructor(parent, text, check, changed) {
    const marks = linter(async view => {
      const { doc } = view.state;
      const found = await check(doc.toString());
      return view.state.doc === doc ? found.map(one => ({ ...placeOf(doc, one), severity: one.severity === 'error' ? 'error' : 'info', message: one.message })) : [];
    }, { delay: 400 });
    this.view = new EditorView({
      parent,
      state: EditorState.create({
        doc: text,
        extensions: [lineNumbers(), highlightActiveLineGutter(), highlightActiveLine(), history(), drawSelection(), indentOnInput(), indentUnit.of('    '),
          bracketMatching(), closeBrackets(), autocompletion(), highlightSelectionMatches(), lintGutter(), marks, pealLanguage, look,
          EditorView.contentAttributes.of({ 'aria-label': 'Text of the kernel; Escape, then Tab leaves it' }),
          EditorView.updateListener.of(update => { if (update.docChanged) changed(); }),
          keymap.of([...closeBracketsKeymap, ...completionKeymap, ...searchKeymap, ...historyKeymap, ...lintKeymap, indentWithTab, ...defaultKeymap])],
      }),
    });
  }

  get text() {
    return this.view.state.doc.toString();
  }

  set text(text) {
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text }, selection: { anchor: 0 }, scrollIntoView: true });
    forceLinting(this.view);
  }

  goTo(diagnostic) {
    this.view.dispatch({ selection: { anchor: placeOf(this.view.state.doc, diagnostic).from }, scrollIntoView: true });
  }
}
