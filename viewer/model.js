// SPDX-License-Identifier: Apache-2.0
// The data of the page (src/report/page_json.c wrote it), decoded into columns, and how its numbers are shown.

const FLAG_BAD = 1, FLAG_OPEN = 4;
const ACCESS_KINDS = ['read', 'write', 'update'];

// A column that was all zero is not in the file.
function column(list, key, type) {
  return list[key] ? type.from(list[key]) : new type(list.count);
}

function decodeBars(list, trackCount) {
  const n = list.count;
  const bars = {
    count: n,
    track: column(list, 'track', Int32Array),
    start: new Float64Array(n),
    end: new Float64Array(n),
    reach: new Float64Array(n), // the latest end of this and all earlier bars of the track: what a search needs
    label: column(list, 'label', Int32Array),
    detail: column(list, 'detail', Int32Array),
    place: column(list, 'place', Int32Array),
    bytes: column(list, 'bytes', Float64Array),
    category: column(list, 'category', Uint8Array),
    flags: column(list, 'flags', Uint8Array),
    joined: column(list, 'joined', Int32Array),
    idle: column(list, 'idle', Float64Array),
    first: new Int32Array(trackCount + 1), // where each track's bars start
  };
  const length = column(list, 'length', Float64Array);
  for (let i = 0; i < n; i++) {
    const same = i > 0 && bars.track[i - 1] === bars.track[i];
    bars.start[i] = list.start[i] + (same ? bars.start[i - 1] : 0);
    bars.end[i] = bars.start[i] + length[i];
    bars.reach[i] = same ? Math.max(bars.reach[i - 1], bars.end[i]) : bars.end[i];
    bars.first[bars.track[i] + 1]++;
  }
  for (let t = 0; t < trackCount; t++) bars.first[t + 1] += bars.first[t];
  return bars;
}

function decodeArrows(list) {
  const n = list.count;
  const from = column(list, 'from', Float64Array), length = column(list, 'length', Float64Array);
  const to = new Float64Array(n), reach = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    to[i] = from[i] + length[i];
    reach[i] = i ? Math.max(reach[i - 1], to[i]) : to[i];
  }
  return {
    count: n, from, to, reach,
    fromTrack: column(list, 'fromTrack', Int32Array), toTrack: column(list, 'toTrack', Int32Array),
    label: column(list, 'label', Int32Array), bytes: column(list, 'bytes', Float64Array),
    category: column(list, 'category', Uint8Array), flags: column(list, 'flags', Uint8Array),
  };
}

// A short list (steps, cells, ...) as one object each.
function decodeRecords(list, keys) {
  const records = [];
  for (let i = 0; i < list.count; i++) {
    const record = {};
    for (const key of keys) record[key] = list[key] ? list[key][i] : 0;
    records.push(record);
  }
  return records;
}

function decodeSteps(raw) {
  const steps = decodeRecords(raw.steps, ['track', 'rank', 'lane', 'launch', 'label', 'detail', 'place', 'category',
    'flags', 'accesses', 'changes']);
  const accesses = decodeRecords(raw.accesses, ['memory', 'from', 'to', 'kind', 'flags']);
  const changes = decodeRecords(raw.changes, ['memory', 'cell', 'from', 'to', 'value', 'quiet']);
  let access = 0;
  let change = changes.length - steps.reduce((sum, step) => sum + step.changes, 0);
  const initial = changes.slice(0, change);
  for (const step of steps) {
    step.accesses = accesses.slice(access, access += step.accesses);
    step.changes = changes.slice(change, change += step.changes);
  }
  return {
    list: steps, initial,
    memories: decodeRecords(raw.memories, ['rank', 'name', 'bytes', 'element']),
    cells: decodeRecords(raw.cells, ['rank', 'name', 'initial']),
  };
}

function decodeModel(raw) {
  const trackRank = raw.tracks.rank || new Array(raw.tracks.count).fill(0);
  const model = {
    raw, kind: raw.kind, unit: raw.unit, texts: raw.texts, categories: raw.categories, sources: raw.sources,
    places: decodeRecords(raw.places, ['source', 'line', 'col', 'len', 'via']),
    tracks: { count: raw.tracks.count, label: column(raw.tracks, 'label', Int32Array), rank: Int32Array.from(trackRank),
      group: column(raw.tracks, 'group', Int32Array) },
    bars: decodeBars(raw.bars, raw.tracks.count),
    arrows: decodeArrows(raw.arrows),
    steps: decodeSteps(raw),
    path: decodeRecords(raw.path, ['track', 'start', 'end', 'cause', 'label', 'place']),
    stalls: decodeRecords(raw.stalls, ['track', 'cause', 'amount']),
    series: raw.series, nodes: raw.nodes, links: raw.links, frames: raw.frames, plots: raw.plots, tables: raw.tables,
  };
  let end = 0;
  for (let i = 0; i < model.bars.count; i++) end = Math.max(end, model.bars.end[i]);
  for (let i = 0; i < model.arrows.count; i++) end = Math.max(end, model.arrows.to[i]);
  model.end = end || 1;
  return model;
}

const TIME_UNITS = [[1e12, 's'], [1e9, 'ms'], [1e6, 'µs'], [1e3, 'ns'], [1, 'ps']];

function significant(value, digits) {
  return String(Number(value.toPrecision(digits)));
}

function formatCount(value) {
  return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, ' ');
}

// A time or a step number in readable form.
function formatTime(model, value, digits = 4) {
  if (model.unit === 'steps') return 'step ' + formatCount(value);
  for (const [scale, name] of TIME_UNITS)
    if (Math.abs(value) >= scale) return significant(value / scale, digits) + ' ' + name;
  return significant(value, digits) + ' ps';
}

function formatBytes(value) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return significant(value, 4) + ' ' + units[unit];
}

function formatPercent(share) {
  const percent = share * 100;
  return (percent > 0 && percent < 0.1 ? '< 0.1' : percent.toFixed(percent < 10 ? 1 : 0)) + ' %';
}

// The first index in [low, high) whose value is above `limit`; values must not fall.
function firstAbove(values, limit, low, high) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}

// Ticks at 1, 2 or 5 times a power of ten, at most `most` of them.
function niceStep(span, most) {
  const rough = span / Math.max(1, most);
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  for (const factor of [1, 2, 5]) if (power * factor >= rough) return power * factor;
  return power * 10;
}

// "0-3, 8, 12-": a function that says whether a rank is meant; null if the text is not such a list.
function parseRanks(text) {
  const ranges = [];
  for (const part of text.split(',')) {
    if (part.trim() === '') continue;
    const match = /^\s*(\d*)\s*(?:(-|\.\.)\s*(\d*))?\s*$/.exec(part);
    if (!match || (match[1] === '' && !match[3])) return null;
    const low = match[1] === '' ? 0 : Number(match[1]);
    const high = !match[2] ? low : match[3] === '' ? Infinity : Number(match[3]);
    if (high < low) return null;
    ranges.push([low, high]);
  }
  return rank => ranges.length === 0 || ranges.some(([low, high]) => rank >= low && rank <= high);
}
