// Joins payload, lanes, panel and controls.

/** The traces of a page; `root` is its viewer section. */
class Viewer {
  constructor(root, payload) {
    this.root = root;
    this.payload = payload;
    this.find = (name) => root.querySelector(`[data-part="${name}"]`);
    this.tip = this.find("tip");
    this.view = new View(root, {
      select: (row) => this.picked(row),
      status: (text) => this.say("status", text),
      hint: (row, x, y) => this.hint(row, x, y),
      recolor: () => this.buildLegend(),
    });
    payload.traces.forEach((trace, index) => {
      const count = `${number(trace.events.id.length)} events`;
      this.find("trace").append(new Option(`${index + 1}. ${trace.id} (${count})`, index));
    });
    this.find("choice").hidden = payload.traces.length < 2;
    this.attach();
    this.follow();
    window.addEventListener("hashchange", () => this.follow());
  }

  attach() {
    const on = (name, type, action) => this.find(name).addEventListener(type, action);
    on("trace", "change", () => this.open(Number(this.find("trace").value)));
    for (const axis of ["time", "cause"]) on(axis, "change", () => this.turn(axis));
    on("critical", "change", () => {
      this.view.showCritical = this.find("critical").checked;
      this.view.refresh();
    });
    on("agent", "change", () => this.filter());
    on("search", "input", () => this.filter());
    on("search", "keydown", (event) => {
      if (event.key === "Enter") this.next(event.shiftKey ? -1 : 1);
    });
    on("previous", "click", () => this.next(-1));
    on("next", "click", () => this.next(1));
    on("closer", "click", () => this.view.zoom(0.6));
    on("wider", "click", () => this.view.zoom(1 / 0.6));
    on("fit", "click", () => this.view.fit());
    this.root.addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.target.matches("input")) return;
      event.preventDefault();
      this.find("search").focus();
    });
  }

  say(name, text) {
    const part = this.find(name);
    if (part.textContent !== text) part.textContent = text;
  }

  /** Show a trace from its beginning. */
  open(index) {
    this.index = index;
    this.model = readTrace(this.payload, index);
    this.hidden = new Set();
    this.find("trace").value = index;
    this.find("search").value = "";
    const { agents } = this.model.raw;
    const role = (lane) => (agents.role ? this.model.word(agents.role[lane]) : null);
    const choices = agents.id.map((id, lane) => (
      new Option(role(lane) ? `${id} (${role(lane)})` : id, lane)));
    this.find("agent").replaceChildren(new Option("all agents", -1), ...choices);
    this.find("facts").replaceChildren(...this.model.raw.facts.map(factTile));
    this.find("time").disabled = !this.model.timed;
    this.find("untimed").hidden = this.model.timed;
    this.find("critical").disabled = !this.model.raw.critical.length;
    this.buildLegend();
    this.turn(this.model.timed ? "time" : "cause");
    this.picked(-1, false);
  }

  turn(axis) {
    this.find(axis).checked = true;
    const { selected } = this.view;
    this.readLevel();
    this.view.show(this.model, axis, this.level);
    if (this.view.model === this.model && selected >= 0) this.view.select(selected);
  }

  buildLegend() {
    const { model } = this;
    const { kinds } = readColors(model.kinds);
    this.find("legend").replaceChildren(...model.kinds.map((kind, index) => {
      const button = make("button", "chip");
      button.setAttribute("aria-pressed", String(!this.hidden.has(index)));
      button.append(swatch(kind, kinds[index]), make("span", "", spaced(kind)),
        make("span", "count", number(model.counts.get(kind))));
      button.addEventListener("click", () => {
        const shown = this.hidden.delete(index) || !this.hidden.add(index);
        button.setAttribute("aria-pressed", String(shown));
        this.filter();
      });
      return button;
    }));
  }

  filter() {
    this.readLevel();
    this.view.level = this.level;
    this.view.refresh();
  }

  /** Work out which events are hidden (0), set back (1) and shown (2), and count the found ones. */
  readLevel() {
    const { model, hidden } = this;
    const found = search(model, this.find("search").value);
    const agent = Number(this.find("agent").value);
    const back = (row) => (found && !found[row]) || (agent >= 0 && model.lane[row] !== agent);
    this.level = Uint8Array.from(model.kind, (kind, row) => (
      hidden.has(kind) ? 0 : back(row) ? 1 : 2));
    const filtered = found !== null || agent >= 0;
    const count = this.level.reduce((sum, level) => sum + (level === 2), 0);
    this.say("matches", filtered ? `${number(count)} of ${number(model.count)} events` : "");
    this.find("previous").disabled = this.find("next").disabled = !filtered || !count;
  }

  /** Select the next found event in the order of the axis. */
  next(by) {
    const { x0 } = this.view.layout;
    const found = [...this.level.keys()].filter((row) => this.level[row] === 2 && x0[row] >= 0);
    found.sort((a, b) => x0[a] - x0[b] || a - b);
    if (!found.length) return;
    const here = found.indexOf(this.view.selected);
    const place = here < 0 && by < 0 ? 0 : here;
    this.view.select(found[(place + by + found.length) % found.length]);
  }

  picked(row, remember = true) {
    showDetails(this.find("details"), this.model, row, (other) => this.view.select(other));
    if (!remember) return;
    const { id, events, agents } = this.model.raw;
    const parts = [id, ...(row < 0 ? [] : [events.id[row]])];
    window.history.replaceState(null, "", `#${parts.map(encodeURIComponent).join("/")}`);
    const what = row < 0 ? "nothing" : `${eventTitle(this.model, row)}, event ${events.id[row]}`;
    const who = row < 0 ? "" : `, agent ${agents.id[this.model.lane[row]]}`;
    this.say("said", `${what}${who} is selected`);
  }

  /** Go where the address points: `#trace/event`. */
  follow() {
    const [trace, event] = window.location.hash.slice(1).split("/").map(decode);
    const found = this.payload.traces.findIndex((each) => each.id === trace);
    const wanted = Math.max(0, found);
    if (this.index !== wanted) this.open(wanted);
    const row = this.model.rowOf.get(event);
    if (row !== undefined && found >= 0) this.view.select(row);
  }

  hint(row, x, y) {
    this.tip.hidden = row < 0;
    if (row < 0) return;
    const { model } = this;
    const kind = spaced(model.kinds[model.kind[row]]);
    const title = eventTitle(model, row);
    const when = [seconds(model.at("start", row)), seconds(model.at("duration", row))];
    this.tip.replaceChildren(
      make("strong", "", title === model.kinds[model.kind[row]] ? kind : `${kind} \u00b7 ${title}`),
      make("span", "", model.raw.events.id[row]),
      make("span", "", `at ${when[0]}, lasts ${when[1]}`),
    );
    const right = x > this.view.width - 240;
    this.tip.style.left = right ? "" : `${x + 14}px`;
    this.tip.style.right = right ? `${this.view.width - x + 14}px` : "";
    this.tip.style.top = `${y + 16}px`;
  }
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a lone % that no page of ours wrote
  }
}

function factTile([label, value, note]) {
  const tile = make("div", value === "unknown" ? "fact unknown" : "fact");
  tile.title = note;
  tile.append(make("dt", "", label), make("dd", "", value));
  return tile;
}

async function start() {
  for (const chart of document.querySelectorAll(".chart")) new Chart(chart);
  const root = document.querySelector(".viewer");
  if (!root) return;
  try {
    const viewer = new Viewer(root, await unpack(document.getElementById("payload").textContent));
    root.viewer = viewer; // for the console
    root.dataset.ready = "yes";
  } catch (error) {
    root.replaceChildren(make("p", "note", `The traces cannot be shown: ${error.message}. `
      + "A current browser is needed (one that knows DecompressionStream)."));
    throw error;
  }
}

start();
