// The payload of the page, and one trace of it as typed columns.

const SCHEMA = 1;
const KINDS = [
  "decision", "spawn", "despawn", "delegate", "message", "tool_call", "tool_result", "return",
  "aggregate", "stop", "human", "safety",
];
const LINKS = ["spawn", "delegate", "message", "return"];

/** Base64 of gzip of JSON, as it stands in the page. */
async function unpack(packed) {
  const text = atob(packed);
  const bytes = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index += 1) bytes[index] = text.charCodeAt(index);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const payload = JSON.parse(await new Response(stream).text());
  if (payload.schema !== SCHEMA) throw new Error(`payload schema ${payload.schema} is not known`);
  return payload;
}

/** Everything about one trace that does not depend on how it is looked at. */
function readTrace(payload, index) {
  const raw = payload.traces[index];
  const { words, texts } = payload;
  const word = (code) => (code === null || code === undefined ? null : words[code]);
  const at = (name, row) => (raw.events[name] ? raw.events[name][row] : null);
  const model = { raw, words, texts, word, at, count: raw.events.id.length };
  model.lane = Int32Array.from(raw.events.lane);
  model.lanes = raw.agents.id.length;
  model.start = numbers(raw.events.start, model.count);
  model.duration = numbers(raw.events.duration, model.count);
  Object.assign(model, readKinds(model));
  model.critical = new Uint8Array(model.count);
  for (const row of raw.critical) model.critical[row] = 1;
  model.laneOf = new Map(raw.agents.id.map((id, lane) => [id, lane]));
  model.rowOf = new Map(raw.events.id.map((id, row) => [id, row]));
  model.timed = spread(model.start, model.duration);
  model.arcs = readArcs(model);
  return model;
}

function numbers(column, count) {
  if (!column) return new Float64Array(count).fill(NaN);
  return Float64Array.from(column, (value) => (value === null ? NaN : value));
}

/** Kinds that occur, the unusual ones last, and the place of each event's kind among them. */
function readKinds(model) {
  const names = model.raw.events.kind.map(model.word);
  const counts = new Map();
  for (const name of names) counts.set(name, (counts.get(name) || 0) + 1);
  const rank = (name) => (KINDS.includes(name) ? KINDS.indexOf(name) : KINDS.length);
  const kinds = [...counts.keys()].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
  const place = new Map(kinds.map((name, index) => [name, index]));
  return { kinds, counts, kind: Uint16Array.from(names, (name) => place.get(name)) };
}

/** Whether there are times that tell events apart. */
function spread(start, duration) {
  let low = Infinity;
  let high = -Infinity;
  start.forEach((value, row) => {
    if (Number.isNaN(value)) return;
    low = Math.min(low, value);
    high = Math.max(high, value + (duration[row] || 0));
  });
  return high > low;
}

/** Arrows between lanes: edges, and links to an agent that nobody answered by an edge. */
function readArcs(model) {
  const { src, dst } = model.raw.edges;
  const from = [];
  const to = [];
  const answered = new Set();
  src.forEach((row, index) => {
    if (model.lane[row] === model.lane[dst[index]]) return;
    from.push(row);
    to.push(dst[index]);
    answered.add(row);
  });
  const ends = Array.from(to, (row) => model.lane[row]);
  for (let row = 0; row < model.count; row += 1) {
    const lane = model.laneOf.get(model.word(model.at("to", row)));
    const link = LINKS.includes(model.kinds[model.kind[row]]);
    if (!link || answered.has(row) || lane === undefined || lane === model.lane[row]) continue;
    from.push(row);
    to.push(-1);
    ends.push(lane);
  }
  return { from: Int32Array.from(from), to: Int32Array.from(to), lane: Int32Array.from(ends) };
}

/** Causes (or effects) of an event as [row, label, evidence]. */
function neighbours(model, row, near, far) {
  const { edges } = model.raw;
  const found = [];
  edges[near].forEach((end, index) => {
    if (end === row) {
      found.push([edges[far][index], model.word(edges.label[index]),
        model.word(edges.evidence[index])]);
    }
  });
  return found;
}

/** Rows that match a text, as flags; `null` for no text. Searches data, not what is on screen. */
function search(model, query) {
  const wanted = query.trim().toLowerCase();
  if (!wanted) return null;
  const has = (text) => text.toLowerCase().includes(wanted);
  const word = Uint8Array.from(model.words, has);
  const text = Uint8Array.from(model.texts, ([kept]) => has(kept));
  const { events, agents } = model.raw;
  const agent = agents.id.map((id, lane) => has(id) || ["role", "name", "model"].some(
    (field) => agents[field] && agents[field][lane] !== null && word[agents[field][lane]]));
  const flagged = (name, flags, row) => events[name] && events[name][row] !== null
    && flags[events[name][row]];
  const chosen = (row) => {
    const choice = model.at("chosen", row);
    return choice !== null && word[events.candidates[row][choice]];
  };
  return Uint8Array.from(events.id, (id, row) => has(id) || agent[model.lane[row]]
    || ["kind", "to", "tool", "label", "type", "policy"].some((name) => flagged(name, word, row))
    || ["content", "observation", "attrs"].some((name) => flagged(name, text, row))
    || chosen(row) ? 1 : 0);
}
