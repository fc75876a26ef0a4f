// The panel beside the lanes: all that is known about one event, or about the trace.

const SHORT = { text: 600, candidates: 10, links: 12 };

/** Fill the panel; `go(row)` is called when another event is picked in it. */
function showDetails(panel, model, row, go) {
  panel.replaceChildren(...(row < 0 ? aboutTrace(model) : aboutEvent(model, row, go)));
}

function aboutTrace(model) {
  const { about, scores, notes, id } = model.raw;
  const team = scores.channel.flatMap((channel, index) => (
    scores.agent[index] === null && scores.event[index] === null
      ? [[model.word(channel), number(scores.value[index])]] : []));
  const parts = [make("p", "eyebrow", "trace"), make("h3", "", id), table(about)];
  if (team.length) parts.push(make("h4", "", "Scores of the team"), table(team));
  parts.push(...notes.map((note) => make("p", "note", note)));
  parts.push(make("p", "quiet", "Pick an event to see what happened."));
  return parts;
}

function aboutEvent(model, row, go) {
  const kind = model.kinds[model.kind[row]];
  const eyebrow = make("p", "eyebrow");
  eyebrow.append(swatch(kind, kindColor(kind)), make("span", "", spaced(kind)));
  const critical = model.critical[row] ? [make("p", "badge", "on the critical path")] : [];
  return [
    eyebrow, make("h3", "", model.raw.events.id[row]), ...critical, table(eventFacts(model, row)),
    ...decisionPart(model, row), ...textPart(model, row, "observation", "What it saw"),
    ...textPart(model, row, "content", "Text"), ...attributes(model, row),
    ...linkPart(model, row, go),
  ];
}

function table(rows) {
  const list = make("dl");
  for (const [label, value] of rows) list.append(make("dt", "", label), make("dd", "", value));
  return list;
}

function eventFacts(model, row) {
  const { agents } = model.raw;
  const lane = model.lane[row];
  const of = (field) => (agents[field] ? model.word(agents[field][lane]) : null);
  const at = (name) => model.at(name, row);
  const agent = [agents.id[lane], of("role"), of("name"), of("model")].filter(Boolean);
  const tokens = [["prompt tokens", "input"], ["from cache", "cache_read"],
    ["written to cache", "cache_write"], ["sampled tokens", "output"]];
  return [
    ["agent", agent.join(" \u00b7 ")],
    ["start", seconds(at("start"))],
    ["duration", seconds(at("duration"))],
    ...optional("to", model.word(at("to"))),
    ...optional("tool", model.word(at("tool"))),
    ...tokens.flatMap(([label, name]) => (at(name) === null ? [] : [[label, number(at(name))]])),
    ...(kind(model, row) === "decision" && at("output") === null ? [["tokens", "unknown"]] : []),
    ...optional("do not price", model.word(at("unreliable"))),
    ...optional("price", at("price") === null ? null : `$ ${number(at("price"))}`),
    ...optional("trusted", at("trusted") === null ? null : at("trusted") ? "yes" : "no"),
    ...optional("label", model.word(at("label"))),
    ...scoresOf(model, row),
  ];
}

const optional = (label, value) => (value === null ? [] : [[label, value]]);
const kind = (model, row) => model.kinds[model.kind[row]];

function scoresOf(model, row) {
  const { scores, events } = model.raw;
  return scores.event.flatMap((event, index) => (model.word(event) === events.id[row]
    ? [[model.word(scores.channel[index]), number(scores.value[index])]] : []));
}

function decisionPart(model, row) {
  const type = model.word(model.at("type", row));
  if (type === null) return [];
  const candidates = model.at("candidates", row);
  const policy = model.word(model.at("policy", row));
  const parts = [make("h4", "", `Decision: ${type}`)];
  if (policy) parts.push(make("p", "quiet", `policy ${policy}`));
  if (!candidates) return [...parts, make("p", "quiet", "What it chose from is unknown.")];
  const probabilities = model.at("probabilities", row);
  if (!probabilities) parts.push(make("p", "quiet", "Probabilities are unknown."));
  const chosen = model.at("chosen", row);
  const order = candidates.map((_, index) => index);
  const rank = (index) => (index === chosen ? 2 : probabilities ? probabilities[index] : 0);
  const first = new Set([...order].sort((a, b) => rank(b) - rank(a)).slice(0, SHORT.candidates));
  const list = make("ol", "candidates");
  const add = (shown) => list.replaceChildren(...shown.map((index) => candidate(
    model.word(candidates[index]) || "(empty)", probabilities && probabilities[index],
    index === chosen)));
  add(order.filter((index) => first.has(index)));
  parts.push(list);
  if (order.length > first.size) {
    parts.push(expander(`Show all ${order.length} candidates`, () => add(order)));
  }
  return parts;
}

function candidate(name, probability, chosen) {
  const item = make("li", chosen ? "chosen" : "");
  const label = make("span", "name", name);
  if (chosen) label.append(make("span", "mark", "chosen"));
  item.append(label);
  if (probability === null) return item;
  const bar = make("span", "bar");
  bar.style.setProperty("--share", `${100 * probability}%`);
  const tiny = probability > 0 && probability < 0.0005;
  item.append(bar, make("span", "share", tiny ? "<0.001" : probability.toFixed(3)));
  return item;
}

function expander(label, open) {
  const button = make("button", "link", label);
  button.addEventListener("click", () => {
    open();
    button.remove();
  });
  return button;
}

function textPart(model, row, name, title) {
  const code = model.at(name, row);
  const absent = model.word(model.at(`${name}_absent`, row));
  if (code === null && absent === null) return [];
  const parts = [make("h4", "", title)];
  if (code === null) {
    return [...parts, make("p", "quiet", `The text is not in the file, only its name: ${absent}`)];
  }
  const [kept, length] = model.texts[code];
  const cut = kept.length > SHORT.text * 1.2;
  const block = make("pre", "", cut ? `${kept.slice(0, SHORT.text)}\u2026` : kept);
  parts.push(block);
  const whole = `Show all ${number(kept.length)} characters`;
  if (cut) parts.push(expander(whole, () => { block.textContent = kept; }));
  if ([...kept].length < length) {
    const part = `${number([...kept].length)} of ${number(length)} characters`;
    parts.push(make("p", "note", `This page holds the first ${part}.`));
  }
  return parts;
}

function attributes(model, row) {
  const code = model.at("attrs", row);
  if (code === null) return [];
  const [kept, length] = model.texts[code];
  const parts = [make("h4", "", "Attributes")];
  const whole = [...kept].length === length;
  const values = whole ? Object.entries(JSON.parse(kept)) : [];
  const long = values.some(([, value]) => String(JSON.stringify(value)).length > 200);
  if (!whole || long) return textPart(model, row, "attrs", "Attributes");
  const plain = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  return [...parts, table(values.map(([name, value]) => [name, plain(value)]))];
}

function linkPart(model, row, go) {
  return [["Because of", "dst", "src"], ["Led to", "src", "dst"]].flatMap(([title, near, far]) => {
    const found = neighbours(model, row, near, far);
    if (!found.length) return [];
    const list = make("ul", "links");
    const add = (links) => list.replaceChildren(...links.map((link) => linkItem(model, link, go)));
    add(found.slice(0, SHORT.links));
    const more = found.length > SHORT.links
      ? [expander(`Show all ${number(found.length)}`, () => add(found))] : [];
    return [make("h4", "", title), list, ...more];
  });
}

function linkItem(model, [row, label, evidence], go) {
  const item = make("li");
  const button = make("button", "link", model.raw.events.id[row]);
  button.addEventListener("click", () => go(row));
  const known = evidence === "recorded" ? "" : ` (${evidence})`;
  const what = `${spaced(kind(model, row))} \u00b7 ${label}${known}`;
  item.append(button, make("span", "quiet", what));
  return item;
}
