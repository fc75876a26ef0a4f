// How an instant of each kind looks: colour and shape, so that colour never speaks alone.

const SHAPES = {
  decision: "diamond",
  spawn: "right",
  despawn: "cross",
  delegate: "ring",
  message: "circle",
  tool_call: "bar",
  tool_result: "tick",
  return: "left",
  aggregate: "down",
  stop: "square",
  human: "up",
  safety: "cross",
};

const OUTLINES = {
  diamond: [[0, -1.25], [1.25, 0], [0, 1.25], [-1.25, 0]],
  right: [[-0.8, -1.05], [1.1, 0], [-0.8, 1.05]],
  left: [[0.8, -1.05], [-1.1, 0], [0.8, 1.05]],
  down: [[-1.05, -0.8], [1.05, -0.8], [0, 1.1]],
  up: [[-1.05, 0.8], [1.05, 0.8], [0, -1.1]],
  square: [[-0.95, -0.95], [0.95, -0.95], [0.95, 0.95], [-0.95, 0.95]],
  bar: [[-1.3, -0.75], [1.3, -0.75], [1.3, 0.75], [-1.3, 0.75]],
  tick: [[-0.35, -1.25], [0.35, -1.25], [0.35, 1.25], [-0.35, 1.25]],
};

/** Paint the mark of a kind around a point, in the context's fill and stroke colours. */
function paintShape(context, kind, x, y, radius) {
  const shape = Object.hasOwn(SHAPES, kind) ? SHAPES[kind] : "circle";
  context.beginPath();
  if (shape === "cross") {
    const arm = radius * 0.85;
    context.moveTo(x - arm, y - arm);
    context.lineTo(x + arm, y + arm);
    context.moveTo(x - arm, y + arm);
    context.lineTo(x + arm, y - arm);
    context.lineWidth = Math.max(1.4, radius * 0.4);
    context.stroke();
    return;
  }
  if (shape === "circle" || shape === "ring") {
    context.arc(x, y, radius * (shape === "ring" ? 0.8 : 1), 0, 2 * Math.PI);
  } else {
    for (const [dx, dy] of OUTLINES[shape]) context.lineTo(x + dx * radius, y + dy * radius);
    context.closePath();
  }
  if (shape === "ring") {
    context.lineWidth = Math.max(1.4, radius * 0.45);
    context.stroke();
  } else {
    context.fill();
  }
}

function kindColor(kind) {
  return color(KINDS.includes(kind) ? `kind-${kind.replace("_", "-")}` : "kind-other");
}

/** Colours of the page as they are now, light or dark; `kinds` in the order of the model's. */
function readColors(kinds) {
  const names = ["ink", "muted", "line", "surface", "stripe", "accent", "critical"];
  const colors = Object.fromEntries(names.map((name) => [name, color(name)]));
  colors.kinds = kinds.map(kindColor);
  return colors;
}

/** Black or white, whichever reads better on a color like `#2464ad`. */
function onColor(fill) {
  const channel = (place) => (parseInt(fill.slice(place, place + 2), 16) / 255) ** 2.2;
  const light = 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
  return light > 0.24 ? "#10151a" : "#ffffff";
}

/** The key of a kind for the legend. */
function swatch(kind, fill) {
  const canvas = make("canvas", "swatch");
  const ratio = window.devicePixelRatio || 1;
  canvas.width = canvas.height = 14 * ratio;
  canvas.setAttribute("aria-hidden", "true");
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.fillStyle = context.strokeStyle = fill;
  paintShape(context, kind, 7, 7, 4.4);
  return canvas;
}
