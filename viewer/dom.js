// SPDX-License-Identifier: Apache-2.0
// Making elements. Texts go in as text, never as markup: names and sources in the data are not trusted.

const byId = id => document.getElementById(id);

// el('div', {class: 'x', onclick: f, style: {width: '3px'}}, 'text', child, ...)
function el(tag, attributes, ...children) {
  const element = document.createElement(tag);
  return dress(element, attributes, children);
}

function svg(tag, attributes, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  return dress(element, attributes, children);
}

function dress(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'style') for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
    else element.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children) if (child !== undefined && child !== null) element.append(child);
  return element;
}

function replace(element, ...children) {
  element.replaceChildren(...children.filter(child => child !== undefined && child !== null));
}

// Fits a canvas to its box in device pixels. Gives the context scaled so that one unit is one CSS pixel.
function fitCanvas(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  const w = Math.max(1, Math.round(width * ratio)), h = Math.max(1, Math.round(height * ratio));
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { context, width, height };
}

// The colours of the style sheet, for canvases. Read again when the theme changes.
function readColours(categories) {
  const style = getComputedStyle(document.documentElement);
  const get = name => style.getPropertyValue('--' + name).trim();
  const colours = { category: categories.map(name => get('c-' + name)), causes: [] };
  for (const name of ['bg', 'panel', 'text', 'muted', 'line', 'faint', 'accent', 'bad', 'path', 'on-bar', 'heat-low', 'heat-mid',
    'heat-high']) colours[name] = get(name);
  for (let i = 1; i <= 8; i++) colours.causes.push(get('q' + i));
  return colours;
}

function announce(text) {
  byId('live').textContent = text;
}
