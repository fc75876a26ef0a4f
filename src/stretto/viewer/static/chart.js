// The learning curve: series over steps, horizontal lines to compare with, labels on the chart.

const SVG = "http://www.w3.org/2000/svg";
const PLOT = { height: 320, top: 14, bottom: 34, left: 52 };

function shape(name, attributes, text = null) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== null) element.textContent = text;
  return element;
}

class Chart {
  constructor(root) {
    this.root = root;
    this.data = JSON.parse(root.querySelector("script").textContent);
    this.svg = shape("svg", { role: "img", tabindex: 0, "aria-label": root.dataset.label });
    this.readout = make("div", "readout");
    this.readout.hidden = true;
    root.append(this.svg, this.readout);
    this.at = -1;
    this.attach();
    new ResizeObserver(() => this.draw()).observe(root);
  }

  attach() {
    this.svg.addEventListener("pointermove", (event) => {
      const x = event.clientX - this.svg.getBoundingClientRect().left;
      const value = this.low + ((x - PLOT.left) / this.wide) * (this.high - this.low);
      const { steps } = this.data;
      const after = Math.min(steps.length - 1, firstAtLeast(steps, value));
      const before = Math.max(0, after - 1);
      this.point(value - steps[before] < steps[after] - value ? before : after);
    });
    this.svg.addEventListener("pointerleave", () => this.point(-1));
    this.svg.addEventListener("blur", () => this.point(-1));
    this.svg.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      this.point(Math.max(0, Math.min(this.data.steps.length - 1, this.at + by)));
    });
  }

  draw() {
    const { steps, series, lines } = this.data;
    const width = this.root.clientWidth;
    this.inside = width < 560; // no room beside the plot: labels go onto the lines
    this.wide = Math.max(60, width - PLOT.left - (this.inside ? 12 : 148));
    [this.low, this.high] = [steps[0], Math.max(steps[0] + 1, steps[steps.length - 1])];
    [this.bottom, this.top] = valueRange(series, lines);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${PLOT.height}`);
    const inside = lines.filter(({ value }) => value >= this.bottom && value <= this.top);
    this.svg.replaceChildren(...this.axes(), ...inside.map((line) => this.line(line)),
      ...series.map((each) => this.curve(each)), ...this.labels(), this.cursor());
  }

  x(step) {
    return PLOT.left + ((step - this.low) / (this.high - this.low)) * this.wide;
  }

  y(value) {
    const tall = PLOT.height - PLOT.top - PLOT.bottom;
    const share = (value - this.bottom) / (this.top - this.bottom);
    return PLOT.top + (1 - Math.min(1, Math.max(0, share))) * tall;
  }

  axes() {
    const parts = [];
    const right = PLOT.left + this.wide;
    const { values, step } = ticks(this.bottom, this.top, 5);
    for (const value of values) {
      const y = Math.round(this.y(value)) + 0.5;
      parts.push(shape("line", { x1: PLOT.left, x2: right, y1: y, y2: y, class: "grid" }),
        shape("text", { x: PLOT.left - 8, y: y + 4, class: "tick end" }, tickLabel(value, step)));
    }
    const foot = PLOT.height - PLOT.bottom;
    const along = ticks(this.low, this.high, Math.max(2, this.wide / 90));
    for (const value of along.values.filter(Number.isInteger)) {
      parts.push(shape("text", { x: this.x(value), y: foot + 18, class: "tick middle" },
        number(value)));
    }
    parts.push(shape("text", { x: right, y: foot + 32, class: "tick end" }, "step"));
    return parts;
  }

  line({ value, role }) {
    const y = this.y(value);
    return shape("line", { x1: PLOT.left, x2: PLOT.left + this.wide, y1: y, y2: y, class: role });
  }

  curve({ values, role }) {
    let path = "";
    values.forEach((value, index) => {
      if (value === null) return;
      path += `${path ? "L" : "M"}${this.x(this.data.steps[index]).toFixed(1)} `
        + this.y(value).toFixed(1);
    });
    return shape("path", { d: path, class: role });
  }

  /** Names at the right end of every line, pushed apart where they would overlap. */
  labels() {
    const ends = this.data.series.flatMap(({ name, values, role }) => {
      const known = values.filter((value) => value !== null);
      return known.length ? [{ name, role, value: known[known.length - 1] }] : [];
    });
    const all = [...ends, ...this.data.lines];
    for (const label of all) label.y = this.y(label.value);
    all.sort((a, b) => a.y - b.y);
    const gap = this.inside ? 13 : 15;
    all.forEach((label, index) => {
      const least = index ? all[index - 1].place + gap : PLOT.top + 2;
      label.place = Math.max(least, label.y - (this.inside ? 7 : 0));
    });
    let most = PLOT.height - PLOT.bottom + 2;
    for (const label of [...all].reverse()) {
      label.place = Math.min(label.place, most);
      most = label.place - gap;
    }
    return all.flatMap((label) => this.label(label));
  }

  label({ name, role, value, y, place }) {
    const right = PLOT.left + this.wide;
    const beyond = value < this.bottom ? " \u2193" : value > this.top ? " \u2191" : "";
    const text = `${name} ${fixed(value)}${beyond}`;
    if (this.inside) {
      return [shape("text", { x: right - 2, y: place + 3, class: `label end ${role}` }, text)];
    }
    const lead = shape("path", { d: `M${right + 2} ${y}L${right + 10} ${place}`, class: "lead" });
    return [lead, shape("text", { x: right + 14, y: place + 4, class: `label ${role}` }, text)];
  }

  cursor() {
    const { x, foot } = { x: -10, foot: PLOT.height - PLOT.bottom };
    this.group = shape("g", { class: "cursor" });
    this.group.append(shape("line", { x1: x, x2: x, y1: PLOT.top, y2: foot }));
    this.point(this.at);
    return this.group;
  }

  /** Show the values of a step, -1 for none. */
  point(index) {
    this.at = index;
    this.readout.hidden = index < 0;
    this.group.setAttribute("visibility", index < 0 ? "hidden" : "visible");
    if (index < 0) return;
    const { steps, series, extras } = this.data;
    const x = this.x(steps[index]);
    const line = this.group.firstChild;
    line.setAttribute("x1", x);
    line.setAttribute("x2", x);
    const dots = series.filter(({ values }) => values[index] !== null).map(({ values, role }) => (
      shape("circle", { cx: x, cy: this.y(values[index]), r: 4, class: role })));
    this.group.replaceChildren(line, ...dots);
    const rows = [...series, ...extras].map(({ name, values }) => (
      [name, Number.isInteger(values[index]) ? number(values[index]) : fixed(values[index])]));
    this.readout.replaceChildren(make("strong", "", `step ${number(steps[index])}`), table(rows));
    const right = x > this.root.clientWidth / 2;
    this.readout.style.left = right ? "" : `${x + 12}px`;
    this.readout.style.right = right ? `${this.root.clientWidth - x + 12}px` : "";
  }
}

function fixed(value) {
  return value === null ? "unknown" : value.toFixed(4).replace("-", "\u2212");
}

/** The values to show: all of the series and the optimum, and baselines that are not far away. */
function valueRange(series, lines) {
  const core = series.flatMap(({ values }) => values.filter((value) => value !== null));
  core.push(...lines.filter(({ role }) => role === "optimum").map(({ value }) => value));
  const [low, high] = [Math.min(...core), Math.max(...core)];
  const near = lines.map(({ value }) => value).filter((value) => (
    value >= low - (high - low) && value <= high + (high - low)));
  const [least, most] = [Math.min(low, ...near), Math.max(high, ...near)];
  const margin = (most - least || Math.abs(most) || 1) * 0.06;
  return [least - margin, most + margin];
}
