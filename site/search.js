// SPDX-License-Identifier: Apache-2.0
// Search without a server: window.pealIndex is [[page, anchor, title, text], ...], one for each section.
'use strict';
const box = document.getElementById('search'), found = document.getElementById('found'), root = document.body.dataset.root;

function scoreOf([, , title, text], words) {
  const head = title.toLowerCase(), body = text.toLowerCase();
  let score = 0;
  for (const word of words) {
    const part = (head.includes(word) ? 20 : 0) + Math.min(10, body.split(word).length - 1);
    if (!part) return 0;
    score += part;
  }
  return score;
}

function search() {
  const words = box.value.toLowerCase().split(/\s+/).filter(word => word.length > 1);
  const hits = words.length ? window.pealIndex.map(section => [scoreOf(section, words), section]).filter(([score]) => score) : [];
  hits.sort((a, b) => b[0] - a[0]);
  found.replaceChildren(...hits.slice(0, 20).map(([, [page, anchor, title, text]]) => {
    const link = document.createElement('a'), about = document.createElement('small');
    link.href = root + page + (anchor ? '#' + anchor : '');
    link.textContent = title;
    const at = Math.max(0, text.toLowerCase().indexOf(words[0]) - 40);
    about.textContent = text.slice(at, at + 140);
    link.append(about);
    return link;
  }));
  if (words.length && !hits.length) found.textContent = 'nothing has these words';
}

box.addEventListener('input', search);
document.addEventListener('keydown', event => {
  if (event.key === '/' && document.activeElement !== box) { event.preventDefault(); box.focus(); }
  if (event.key === 'Escape') { box.value = ''; search(); }
});
