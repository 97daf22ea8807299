// SPDX-License-Identifier: Apache-2.0
// A link that contains the text and the settings: JSON, deflated, in the fragment, which browsers do not send to servers.

const MAX_TEXT = 1 << 20;

function toBase64(bytes) {
  let text = '';
  for (let i = 0; i < bytes.length; i += 4096) text += String.fromCharCode(...bytes.subarray(i, i + 4096));
  return btoa(text).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
}

function fromBase64(text) {
  const bytes = atob(text.replace(/-/g, '+').replace(/_/g, '/'));
  return Uint8Array.from(bytes, letter => letter.charCodeAt(0));
}

async function collect(stream) {
  const parts = [], reader = stream.getReader();
  let size = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    size += part.value.length;
    if (size > MAX_TEXT) throw new Error('the text in the link is longer than 1 MiB');
    parts.push(part.value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

export async function writeLink(state) {
  const stream = new Blob([JSON.stringify(state)]).stream().pipeThrough(new CompressionStream('deflate-raw'));
  return '#1' + toBase64(new Uint8Array(await new Response(stream).arrayBuffer()));
}

// The state, or null: the fragment is not a link of ours. Throws if it is one that cannot be read.
export async function readLink(fragment) {
  if (!/^#1[\w-]+$/.test(fragment)) return null;
  const stream = new Blob([fromBase64(fragment.slice(2))]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  const state = JSON.parse(new TextDecoder().decode(await collect(stream)));
  const good = state && typeof state.text === 'string' && Object.values(state).every(value => typeof value === 'string');
  if (!good) throw new Error('the link does not contain a kernel');
  return state;
}
