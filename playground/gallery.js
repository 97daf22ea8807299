// SPDX-License-Identifier: Apache-2.0
// Kernels to start from, and bugs that happened, with their stories: catalogue.json, made by catalogue.py.

import catalogue from './catalogue.json';
import { byId, el, replace } from './dom.js';

export { catalogue };

export function findExample(id) {
  for (const group of catalogue.groups) {
    const item = group.items.find(one => one.id === id);
    if (item) return item;
  }
  return null;
}

// Paragraphs of Markdown with **bold**, `code` and # titles; as elements, so that nothing in it can be markup.
export function storyElements(markdown) {
  return markdown.trim().split(/\n\s*\n/).map(block => {
    const title = block.match(/^#+ (.*)/);
    const parts = (title ? title[1] : block.replace(/\s*\n\s*/g, ' ')).split(/(\*\*[^*]+\*\*|`[^`]+`)/);
    const children = parts.map(part => {
      if (part.startsWith('**')) return el('b', {}, part.slice(2, -2));
      if (part.startsWith('`')) return el('code', {}, part.slice(1, -1));
      return part;
    });
    return el(title ? 'h2' : 'p', {}, ...children);
  });
}

function matches(item, words) {
  const text = (item.id + ' ' + item.title + ' ' + item.about).toLowerCase();
  return words.every(word => text.includes(word));
}

function show(filter, choose) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const parts = [];
  for (const group of catalogue.groups) {
    const items = group.items.filter(item => matches(item, words));
    if (!items.length) continue;
    parts.push(el('h3', {}, group.name), el('p', {}, group.about), el('div', { class: 'items' }, ...items.map(item =>
      el('button', { type: 'button', 'data-id': item.id, onclick: () => { byId('gallery').close(); choose(item); } },
        el('b', {}, item.title), el('span', {}, item.about)))));
  }
  replace(byId('gallery-list'), ...(parts.length ? parts : [el('p', {}, 'nothing has these words')]));
}

export function prepareGallery(choose) {
  byId('gallery-filter').addEventListener('input', event => show(event.target.value, choose));
  return () => {
    byId('gallery-filter').value = '';
    show('', choose);
    byId('gallery').showModal();
  };
}
