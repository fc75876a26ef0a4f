// Elements without markup, and numbers as people read them.

/** Make an element; `text` is always shown as text, whatever it holds. */
function make(tag, name = "", text = null) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== null) element.textContent = text;
  return element;
}

const spaced = (word) => word.replaceAll("_", " ");

function number(value, digits = 4) {
  if (value === null || !Number.isFinite(value)) return "unknown";
  const whole = Number.isInteger(value) || Math.abs(value) >= 10 ** digits;
  const options = whole ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: digits };
  return value.toLocaleString("en", options).replace("-", "\u2212");
}

function seconds(value) {
  if (value === null || !Number.isFinite(value)) return "unknown";
  if (value > 0 && value < 1) return `${number(value * 1000)} ms`;
  if (value < 120) return `${number(value)} s`;
  const minutes = Math.floor(Math.round(value) / 60);
  const two = (part) => String(part).padStart(2, "0");
  if (minutes < 120) return `${minutes} min ${two(Math.round(value) % 60)} s`;
  return `${number(Math.floor(minutes / 60))} h ${two(minutes % 60)} min`;
}

/** Ticks at round numbers, about `count` of them between two values. */
function ticks(low, high, count) {
  const raw = (high - low) / Math.max(1, count);
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = size * [1, 2, 5, 10].find((factor) => factor * size >= raw * 0.999);
  const found = [];
  for (let index = Math.ceil(low / step); index * step <= high; index += 1) {
    found.push(index * step || 0); // no minus before 0
  }
  return { values: found, step };
}

/** The label of a tick, with as many decimals as its distance to the next one needs. */
function tickLabel(value, step) {
  const decimals = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
  const options = { minimumFractionDigits: Math.min(decimals, 9), maximumFractionDigits: 9 };
  return value.toLocaleString("en", options).replace("-", "\u2212");
}

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
