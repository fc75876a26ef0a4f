// Paints what a view shows. Whatever falls onto the same pixels is painted once, so that the cost
// follows the size of the screen, not the number of events.

const AXIS = 28;
const MOST_ARCS = 3000;
const MOST_SHAPES = 2000;

const xOf = (view, value) => view.gutter + (value - view.left) * view.scale;
const yOf = (view, lane) => AXIS + lane * view.laneHeight - view.top;

/** Where an instant is painted: those at one moment stand side by side as far as there is room. */
function markX(view, row) {
  const { x0, place, size, room } = view.layout;
  const gap = Math.min(11, (room[row] * view.scale) / size[row]);
  return xOf(view, x0[row]) + place[row] * gap;
}

/** The two ends of an event in pixels. */
function spanX(view, row) {
  const { x0, x1 } = view.layout;
  if (x1[row] > x0[row]) return [xOf(view, x0[row]), xOf(view, x1[row])];
  const x = markX(view, row);
  return [x, x];
}

/** Top and height of the bar of an event. */
function barY(view, row) {
  const slots = Math.max(1, view.layout.bars[view.model.lane[row]].length);
  const inner = view.laneHeight - (view.laneHeight > 12 ? 7 : 2);
  const height = Math.max(1, inner / slots - (slots > 1 && inner > 12 ? 1 : 0));
  const top = yOf(view, view.model.lane[row]) + (view.laneHeight > 12 ? 3 : 1);
  return [top + (view.layout.slot[row] * inner) / slots, height];
}

function visibleLanes(view) {
  const first = Math.max(0, Math.floor(view.top / view.laneHeight));
  const last = Math.ceil((view.top + view.height - AXIS) / view.laneHeight);
  return [first, Math.min(view.model.lanes, last)];
}

function paint(view) {
  const { context, width, height, colors } = view;
  context.clearRect(0, 0, width, height);
  paintLanes(view);
  context.save();
  context.beginPath();
  context.rect(view.gutter, AXIS, width - view.gutter, height - AXIS);
  context.clip();
  view.shapes = countMarks(view) < MOST_SHAPES;
  view.hiddenArcs = paintArcs(view);
  paintEvents(view, (lane, level) => {
    for (const slot of view.layout.bars[lane]) paintBars(view, slot, level);
  });
  if (view.showCritical) paintRoute(view);
  paintEvents(view, (lane, level) => paintMarks(view, lane, level));
  context.restore();
  paintAxis(view);
  context.fillStyle = colors.line;
  context.fillRect(view.gutter - 1, 0, 1, height);
}

/** Stripes, and names as far as they have room; a crowd of lanes shows every second or third. */
function paintLanes(view) {
  const { context, colors, laneHeight } = view;
  const [first, last] = visibleLanes(view);
  const every = Math.max(1, Math.ceil(11 / laneHeight));
  context.font = `${Math.min(12, Math.max(9.5, laneHeight - 4))}px ${view.font}`;
  context.textBaseline = "middle";
  context.textAlign = "left";
  for (let lane = first; lane < last; lane += 1) {
    const y = yOf(view, lane);
    if (lane % 2) {
      context.fillStyle = colors.stripe;
      context.fillRect(0, y, view.width, laneHeight);
    }
    if (lane % every === 0) paintName(view, lane, y + laneHeight / 2);
  }
}

function paintName(view, lane, y) {
  const { context, colors, model } = view;
  const { id, role, name, depth } = model.raw.agents;
  const indent = 10 + Math.min(depth[lane], 6) * (view.gutter > 100 ? 9 : 3);
  const known = name && model.word(name[lane]);
  const what = role && view.gutter > 100 ? model.word(role[lane]) : null;
  context.save();
  context.beginPath();
  context.rect(0, AXIS, view.gutter - 6, view.height);
  context.clip();
  context.fillStyle = colors.ink;
  const label = known || tail(context, id[lane], view.gutter - 8 - indent);
  context.fillText(label, indent, y);
  if (what && what !== label) {
    const after = indent + context.measureText(label).width + 7;
    context.fillStyle = colors.muted;
    context.fillText(what, after, y);
  }
  context.restore();
}

/** The end of a path that fits: its beginning is the parent's, a few lanes above. */
function tail(context, path, room) {
  let shown = path;
  for (let cut = 1; cut < path.length && context.measureText(shown).width > room; cut += 1) {
    shown = `\u2026${path.slice(cut)}`;
  }
  return shown;
}

function paintAxis(view) {
  const { context, colors, width } = view;
  context.fillStyle = colors.surface;
  context.fillRect(0, 0, width, AXIS);
  context.fillStyle = colors.line;
  context.fillRect(0, AXIS - 1, width, 1);
  context.font = `11px ${view.font}`;
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.fillStyle = colors.muted;
  context.fillText(view.layout.axis === "time" ? "time" : "causal step", 10, AXIS / 2);
  const { values, step } = ticks(view.left, view.right, (width - view.gutter) / 110);
  for (const value of values) {
    const x = xOf(view, value);
    if (x < view.gutter) continue;
    context.fillStyle = colors.line;
    context.fillRect(Math.round(x), AXIS - 7, 1, 7);
    context.fillStyle = colors.muted;
    const unit = view.layout.axis === "time" ? " s" : "";
    context.fillText(tickLabel(value, step) + unit, x + 5, AXIS / 2);
  }
}

/** Paint lane by lane what a filter sets back (level 1), then everything else (2). */
function paintEvents(view, paintLane) {
  const [first, last] = visibleLanes(view);
  for (const level of view.level.includes(1) ? [1, 2] : [2]) {
    view.context.globalAlpha = level === 1 ? 0.16 : 1;
    for (let lane = first; lane < last; lane += 1) paintLane(lane, level);
  }
}

/** Instants in view: beyond some number they are painted as plain ticks. */
function countMarks(view) {
  const [first, last] = visibleLanes(view);
  const start = (row) => view.layout.x0[row];
  let count = 0;
  for (const rows of view.layout.marks.slice(first, last)) {
    count += firstAtLeast(rows, view.right, start) - firstAtLeast(rows, view.left, start);
  }
  return count;
}

function paintBars(view, { rows, reach }, level) {
  const { context, model, layout, colors } = view;
  let until = -Infinity;
  let kind = -1;
  for (let index = firstAtLeast(reach, view.left); index < rows.length; index += 1) {
    const row = rows[index];
    if (layout.x0[row] > view.right) break;
    if (view.level[row] !== level) continue;
    const x = Math.max(xOf(view, layout.x0[row]), view.gutter - 4);
    const end = Math.min(xOf(view, layout.x1[row]), view.width + 4);
    if (end <= until && end - x < 1) continue;
    const [y, height] = barY(view, row);
    if (model.kind[row] !== kind) {
      kind = model.kind[row];
      context.fillStyle = colors.kinds[kind];
    }
    const wide = Math.max(1, end - x - (end - x > 4 ? 1 : 0));
    if (wide > 6 && height > 6) roundBar(context, x, y, wide, height);
    else context.fillRect(x, y, wide, height);
    until = x + wide;
    if (wide > 46 && height >= 12 && level === 2) {
      paintBarText(view, row, x, y, wide, height);
      context.fillStyle = colors.kinds[kind];
    }
  }
}

function roundBar(context, x, y, width, height) {
  context.beginPath();
  context.roundRect(x, y, width, height, 2.5);
  context.fill();
}

function paintBarText(view, row, x, y, width, height) {
  const { context, colors } = view;
  const room = Math.floor((width - 10) / 6.3);
  const text = eventTitle(view.model, row);
  context.fillStyle = onColor(colors.kinds[view.model.kind[row]]);
  context.font = `11px ${view.font}`;
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.fillText(text.length > room ? `${text.slice(0, room - 1)}\u2026` : text, x + 6,
    y + height / 2 + 0.5);
}

/** What an event is in a few words: its tool or its choice, else its kind. */
function eventTitle(model, row) {
  const chosen = model.at("chosen", row);
  const choice = chosen === null ? null : model.word(model.at("candidates", row)[chosen]);
  return model.word(model.at("tool", row)) || choice || model.kinds[model.kind[row]];
}

function paintMarks(view, lane, level) {
  const { context, model, layout, colors } = view;
  const rows = layout.marks[lane];
  const middle = yOf(view, lane) + view.laneHeight / 2;
  const radius = Math.min(4.6, view.laneHeight / 2 - 1.5);
  const tall = Math.max(2, view.laneHeight - 4);
  const foot = view.shapes ? tall : Math.max(2, tall * 0.35); // a crowd must not hide the bars
  const reach = view.left - 40 / view.scale;
  let until = -Infinity;
  let kind = -1;
  for (let index = firstAtLeast(rows, reach, (row) => layout.x0[row]); index < rows.length;
    index += 1) {
    const row = rows[index];
    if (layout.x0[row] > view.right) break;
    if (view.level[row] !== level) continue;
    const x = markX(view, row);
    if (x - until < 0.8) continue;
    until = x;
    if (model.kind[row] !== kind) {
      kind = model.kind[row];
      context.fillStyle = context.strokeStyle = colors.kinds[kind];
    }
    if (radius >= 3 && view.shapes) paintShape(context, model.kinds[kind], x, middle, radius);
    else context.fillRect(x - 0.5, middle + tall / 2 - foot, 1, foot);
  }
}

/** The curve of an arc; one that takes no time bows to the right. */
function tracePath(context, x0, y0, x1, y1) {
  const bend = Math.max(10, Math.min(70, (x1 - x0) / 2));
  context.moveTo(x0, y0);
  context.bezierCurveTo(x0 + bend, y0, x1 - (x1 - x0 > 20 ? bend : -bend), y1, x1, y1);
}

function arcEnds(view, index) {
  const { model } = view;
  const from = model.arcs.from[index];
  const to = model.arcs.to[index];
  const [start, end] = spanX(view, from);
  const target = to < 0 ? end : spanX(view, to)[0];
  const source = end <= target + 0.5 ? end : Math.min(start, target);
  const middle = view.laneHeight / 2;
  return [source, yOf(view, model.lane[from]) + middle, target,
    yOf(view, model.arcs.lane[index]) + middle];
}

/** Rows of the arcs that are in view, each pixel once. */
function visibleArcs(view) {
  const { model, layout } = view;
  const found = [];
  const seen = new Set();
  for (let index = 0; index < model.arcs.from.length; index += 1) {
    const from = model.arcs.from[index];
    const to = model.arcs.to[index] < 0 ? from : model.arcs.to[index];
    if (!(layout.x0[from] <= view.right && layout.x1[to] >= view.left)) continue;
    if (view.level[from] === 0 || view.level[to] === 0) continue;
    const high = yOf(view, Math.min(model.lane[from], model.arcs.lane[index]));
    const low = yOf(view, Math.max(model.lane[from], model.arcs.lane[index]) + 1);
    if (low < AXIS || high > view.height) continue;
    const pixel = Math.floor(xOf(view, layout.x1[from]) / 2) * 4096;
    const key = (pixel + model.lane[from]) * 4096 + model.arcs.lane[index];
    if (layout.x1[from] > layout.x0[from] && seen.has(key)) continue;
    seen.add(key);
    found.push(index);
  }
  return found;
}

/** Paint arcs and return how many were left out because there are too many to tell apart. */
function paintArcs(view) {
  const { context, model, colors } = view;
  const found = visibleArcs(view);
  if (found.length > MOST_ARCS) return found.length;
  const byKind = new Map();
  for (const index of found) {
    const from = model.arcs.from[index];
    const key = model.kind[from] * 4 + view.level[from];
    if (!byKind.has(key)) byKind.set(key, []);
    byKind.get(key).push(index);
  }
  context.lineWidth = 1.1;
  for (const [key, arcs] of byKind) {
    context.strokeStyle = colors.kinds[key >> 2];
    context.globalAlpha = (key & 3) === 1 ? 0.1 : arcs.length > 600 ? 0.3 : 0.55;
    context.beginPath();
    for (const index of arcs) tracePath(context, ...arcEnds(view, index));
    context.stroke();
  }
  context.globalAlpha = 1;
  return 0;
}

/** The critical path: one line under its events, from lane to lane. */
function paintRoute(view) {
  const { context, model, colors } = view;
  const rows = model.raw.critical.filter((row) => !Number.isNaN(view.layout.x0[row]));
  context.beginPath();
  let [x, y] = [NaN, NaN];
  for (const row of rows) {
    const start = xOf(view, view.layout.x0[row]);
    const end = xOf(view, view.layout.x1[row]);
    const under = yOf(view, model.lane[row]) + view.laneHeight - 2;
    if (y === under && end - x < 1) continue;
    if (Number.isNaN(x)) context.moveTo(start, under);
    else if (y === under) context.lineTo(start, under);
    else {
      context.lineTo(Math.max(x, start), y);
      context.lineTo(Math.max(x, start), under);
    }
    context.lineTo(Math.max(end, start + 1), under);
    [x, y] = [Math.max(end, start + 1), under];
  }
  context.lineJoin = "round";
  context.strokeStyle = colors.surface;
  context.lineWidth = 4;
  context.stroke();
  context.strokeStyle = colors.critical;
  context.lineWidth = 2;
  context.stroke();
}
