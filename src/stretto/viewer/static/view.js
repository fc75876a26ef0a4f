// The lanes on screen: which part of a trace is shown, and how hands and keys move it.

const LANE = { most: 30, least: 9 };
const BELOW = 12;

class View {
  /** `hooks`: `select(row)`, `status(text)`, `hint(row, x, y)` and `recolor()` are called when the
   *  selection, what is left out, the event under the pointer or the colours change. */
  constructor(root, hooks) {
    this.hooks = hooks;
    this.scroller = root.querySelector(".scroller");
    this.spacer = root.querySelector(".spacer");
    this.canvas = root.querySelector(".lanes");
    this.overlay = root.querySelector(".overlay");
    this.minimap = root.querySelector(".minimap");
    this.font = getComputedStyle(document.body).fontFamily;
    this.selected = -1;
    this.hovered = -1;
    this.showCritical = true;
    this.waiting = false;
    attachPointer(this);
    attachKeys(this);
    attachMinimap(this);
    this.scroller.addEventListener("scroll", () => this.refresh());
    new ResizeObserver(() => this.resize()).observe(this.scroller.parentElement);
    for (const query of ["(prefers-color-scheme: dark)", "print"]) {
      window.matchMedia(query).addEventListener("change", () => this.recolor());
    }
  }

  /** Show a trace on an axis; `level` says which events are hidden (0), set back (1), shown (2). */
  show(model, axis, level) {
    this.model = model;
    this.layout = layOut(model, axis);
    this.level = level;
    this.selected = this.hovered = -1;
    this.left = this.right = NaN;
    this.colors = readColors(model.kinds);
    this.resize();
    this.fit();
  }

  recolor() {
    this.colors = readColors(this.model.kinds);
    paintMinimap(this);
    paintNow(this);
    this.hooks.recolor();
  }

  resize() {
    if (!this.model || !this.scroller.clientWidth) return;
    const lanes = Math.max(1, this.model.lanes);
    const room = Math.max(300, Math.round(window.innerHeight * 0.6));
    this.laneHeight = Math.min(LANE.most, Math.max(LANE.least, Math.floor((room - AXIS) / lanes)));
    const content = AXIS + lanes * this.laneHeight + BELOW;
    this.width = this.scroller.clientWidth;
    this.height = Math.min(content, room);
    this.gutter = this.width < 620 ? 76 : 168;
    this.scroller.style.height = `${this.height}px`;
    this.spacer.style.height = `${content}px`;
    this.width = this.scroller.clientWidth; // a scrollbar may just have come or gone
    this.context = sizeCanvas(this.canvas, this.width, this.height);
    this.above = sizeCanvas(this.overlay, this.width, this.height);
    this.move(this.left, this.right);
    paintMinimap(this);
  }

  /** Show from `left` to `right` on the axis. */
  move(left, right) {
    const [low, high] = this.layout.extent;
    const most = (high - low) * 1.5;
    const least = (high - low) * 1e-7;
    const middle = (left + right) / 2;
    const half = Math.min(most, Math.max(least, right - left)) / 2;
    const centre = Math.min(high, Math.max(low, middle));
    this.left = centre - half;
    this.right = centre + half;
    this.scale = (this.width - this.gutter) / (this.right - this.left);
    this.refresh();
  }

  fit() {
    const [low, high] = this.layout.extent;
    const wide = Math.max(100, this.width - this.gutter);
    const last = Math.max(0, ...this.layout.marks.map((rows) => {
      const row = rows[rows.length - 1];
      return row !== undefined && this.layout.x0[row] === high ? this.layout.size[row] : 0;
    }));
    const after = Math.min(wide * 0.3, 14 + 11 * last);
    const unit = (high - low) / (wide - 14 - after);
    this.move(low - 14 * unit, high + after * unit);
  }

  /** Zoom by a factor around a place on screen. */
  zoom(factor, x = (this.gutter + this.width) / 2) {
    const value = this.left + (x - this.gutter) / this.scale;
    this.move(value - (value - this.left) * factor, value + (this.right - value) * factor);
  }

  pan(pixels) {
    this.move(this.left + pixels / this.scale, this.right + pixels / this.scale);
  }

  select(row) {
    this.selected = row;
    if (row >= 0) this.reveal(row);
    this.refresh();
    this.hooks.select(row);
  }

  /** Bring an event into view without moving more than needed. */
  reveal(row) {
    const y = yOf(this, this.model.lane[row]);
    if (y < AXIS) this.scroller.scrollTop += y - AXIS;
    const under = y + this.laneHeight - this.height + BELOW;
    if (under > 0) this.scroller.scrollTop += under;
    this.top = this.scroller.scrollTop;
    const [start, end] = spanX(this, row);
    if (Number.isNaN(start)) return;
    if (end < this.gutter + 8) this.pan(start - this.gutter - 60);
    else if (start > this.width - 8) this.pan(start - this.width + 80);
  }

  /** Paint before the next frame. */
  refresh() {
    if (this.waiting || !this.model) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      paintNow(this);
    });
  }
}

function sizeCanvas(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  return context;
}

function paintNow(view) {
  view.top = view.scroller.scrollTop;
  paint(view);
  paintOverlay(view);
  moveWindow(view);
  view.hooks.status(statusOf(view));
}

/** What is not on the picture, in words. */
function statusOf(view) {
  const parts = [];
  const { undrawn } = view.layout;
  if (undrawn) {
    parts.push(`${number(undrawn)} events have no time: causal order shows them.`);
  }
  if (view.hiddenArcs) {
    parts.push(`${number(view.hiddenArcs)} arrows in view are too many to tell apart: zoom in.`);
  }
  return parts.join(" ");
}

/** What is under the pointer or selected, above everything else. */
function paintOverlay(view) {
  const { above: context, width, height, colors } = view;
  context.clearRect(0, 0, width, height);
  context.save();
  context.beginPath();
  context.rect(view.gutter, AXIS, width - view.gutter, height - AXIS);
  context.clip();
  if (view.selected >= 0) paintLinks(view, view.selected);
  for (const row of [view.hovered, view.selected]) {
    if (row < 0 || Number.isNaN(view.layout.x0[row])) continue;
    outline(view, row);
    context.lineWidth = row === view.selected ? 2.2 : 1;
    context.strokeStyle = colors.ink;
    context.stroke();
  }
  context.restore();
}

function outline(view, row) {
  const { above: context, model, layout } = view;
  context.beginPath();
  const [start, end] = spanX(view, row);
  if (layout.x1[row] > layout.x0[row]) {
    const [y, height] = barY(view, row);
    context.roundRect(start - 1.5, y - 1.5, Math.max(3, end - start + 2), height + 3, 3.5);
    return;
  }
  const middle = yOf(view, model.lane[row]) + view.laneHeight / 2;
  context.arc(start, middle, Math.min(8, view.laneHeight / 2 + 1), 0, 2 * Math.PI);
}

/** The arcs of one event, clearer than the others. */
function paintLinks(view, row) {
  const { above: context, model, colors } = view;
  for (let index = 0; index < model.arcs.from.length; index += 1) {
    const from = model.arcs.from[index];
    if (from !== row && model.arcs.to[index] !== row) continue;
    if (view.level[from] === 0) continue;
    const ends = arcEnds(view, index);
    context.beginPath();
    tracePath(context, ...ends);
    context.lineWidth = 2;
    context.strokeStyle = context.fillStyle = colors.kinds[model.kind[from]];
    context.stroke();
    context.beginPath();
    context.arc(ends[2], ends[3], 3, 0, 2 * Math.PI);
    context.fill();
  }
}

/** The event at a place on screen, -1 for none: instants first, for they lie on top. */
function hit(view, x, y) {
  if (y < AXIS || x < view.gutter) return -1;
  const lane = Math.floor((y - AXIS + view.top) / view.laneHeight);
  if (lane < 0 || lane >= view.model.lanes) return -1;
  const mark = hitMark(view, lane, x);
  return mark >= 0 ? mark : hitBar(view, lane, x, y);
}

function hitMark(view, lane, x) {
  const rows = view.layout.marks[lane];
  const start = (row) => view.layout.x0[row];
  const from = firstAtLeast(rows, view.left + (x - view.gutter - 700) / view.scale, start);
  let [best, nearest] = [7, -1];
  for (let index = from; index < rows.length; index += 1) {
    const row = rows[index];
    if (xOf(view, start(row)) > x + 7) break;
    const distance = Math.abs(markX(view, row) - x);
    if (view.level[row] && distance < best) [best, nearest] = [distance, row];
  }
  return nearest;
}

function hitBar(view, lane, x, y) {
  const value = view.left + (x - view.gutter) / view.scale;
  const slack = 2 / view.scale;
  for (const { rows, reach } of view.layout.bars[lane]) {
    for (let index = firstAtLeast(reach, value - slack); index < rows.length; index += 1) {
      const row = rows[index];
      if (view.layout.x0[row] > value + slack) break;
      const [top, height] = barY(view, row);
      const near = y >= top - 2 && y <= top + height + 3;
      if (near && view.level[row] && view.layout.x1[row] >= value - slack) return row;
    }
  }
  return -1;
}
