// Where events are along the x axis, and how those of one lane share it. Units are the axis' own
// (seconds or causal steps); pixels come in only when the view paints.

const MOST_SLOTS = 4;

/** Lay out a trace on an axis: "time" or "cause". */
function layOut(model, axis) {
  const x0 = new Float64Array(model.count);
  const x1 = new Float64Array(model.count);
  for (let row = 0; row < model.count; row += 1) {
    x0[row] = axis === "time" ? model.start[row] : model.raw.events.step[row];
    x1[row] = x0[row] + (axis === "time" ? model.duration[row] || 0 : 1);
  }
  const layout = { axis, x0, x1, rows: [], bars: [], marks: [], slot: new Uint8Array(model.count) };
  layout.place = new Uint16Array(model.count);
  layout.size = new Uint16Array(model.count);
  layout.room = new Float64Array(model.count);
  for (let lane = 0; lane < model.lanes; lane += 1) layout.rows.push([]);
  layout.undrawn = 0;
  for (let row = 0; row < model.count; row += 1) {
    if (Number.isNaN(x0[row])) layout.undrawn += 1;
    else layout.rows[model.lane[row]].push(row);
  }
  layout.rows.forEach((rows) => layOutLane(layout, rows));
  layout.extent = extent(layout);
  return layout;
}

function layOutLane(layout, rows) {
  const { x0, x1 } = layout;
  rows.sort((a, b) => x0[a] - x0[b] || a - b);
  layout.bars.push(stack(layout, rows.filter((row) => x1[row] > x0[row])));
  const marks = rows.filter((row) => x1[row] <= x0[row]);
  layout.marks.push(marks);
  for (let first = 0; first < marks.length;) {
    let next = first + 1;
    while (next < marks.length && x0[marks[next]] === x0[marks[first]]) next += 1;
    const room = next < marks.length ? x0[marks[next]] - x0[marks[first]] : Infinity;
    for (let index = first; index < next; index += 1) {
      layout.place[marks[index]] = index - first;
      layout.size[marks[index]] = next - first;
      layout.room[marks[index]] = room;
    }
    first = next;
  }
}

/** Bars of a lane in rows that do not overlap, as long as there are rows. */
function stack(layout, rows) {
  const slots = [];
  for (const row of rows) {
    let slot = slots.findIndex((each) => each.until <= layout.x0[row] + 1e-12);
    if (slot < 0) slot = Math.min(slots.length, MOST_SLOTS - 1);
    if (slot === slots.length) slots.push({ rows: [], reach: [], until: -Infinity });
    const chosen = slots[slot];
    chosen.until = Math.max(chosen.until, layout.x1[row]);
    chosen.rows.push(row);
    chosen.reach.push(chosen.until); // never falls, so that it can be searched
    layout.slot[row] = slot;
  }
  return slots;
}

function extent({ rows, x0, x1 }) {
  let low = Infinity;
  let high = -Infinity;
  for (const lane of rows) {
    for (const row of lane) {
      low = Math.min(low, x0[row]);
      high = Math.max(high, x1[row]);
    }
  }
  if (low === Infinity) return [0, 1];
  return high > low ? [low, high] : [low, low + 1];
}

/** First index of a sorted list whose value is at least `value`. */
function firstAtLeast(list, value, of = (item) => item) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (of(list[middle]) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** How many bars are under way on average in each of `width` columns of the whole extent. */
function profile(layout, width) {
  const within = new Float64Array(width + 2);
  const change = new Float64Array(width + 2);
  const [low, high] = layout.extent;
  const scale = width / (high - low);
  eachBar(layout, (row) => {
    const [left, right] = [(layout.x0[row] - low) * scale, (layout.x1[row] - low) * scale];
    const [first, last] = [Math.floor(left), Math.floor(right)];
    within[first] += Math.min(first + 1, right) - left;
    if (last === first) return;
    within[last] += right - last;
    change[first + 1] += 1;
    change[last] -= 1;
  });
  let sum = 0;
  return within.map((part, column) => part + (sum += change[column])).subarray(0, width);
}

/** The most bars that are under way at one moment. */
function peak(layout) {
  const [starts, ends] = [[], []];
  eachBar(layout, (row) => {
    starts.push(layout.x0[row]);
    ends.push(layout.x1[row]);
  });
  const [begun, ended] = [Float64Array.from(starts).sort(), Float64Array.from(ends).sort()];
  let [over, most] = [0, 0];
  begun.forEach((start, index) => {
    while (ended[over] <= start) over += 1;
    most = Math.max(most, index + 1 - over);
  });
  return most;
}

function eachBar(layout, action) {
  for (const slots of layout.bars) {
    for (const { rows } of slots) rows.forEach(action);
  }
}
