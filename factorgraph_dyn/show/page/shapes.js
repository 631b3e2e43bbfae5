"use strict";
// The data holds places, steps and rows; everything is built from elements and text nodes, never from markup.
const data = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const RADIUS = 0.34;
const TALLEST = 0.72; // part of the window that a panel may take, as in the style
const state = { ordering: 0, step: 0, timer: null };
const zoom = {};
const byId = (id) => document.getElementById(id);
const orderingNow = () => data.orderings[state.ordering];

function make(parent, tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  parent.appendChild(element);
  return element;
}

function html(parent, tag, properties, text) {
  const element = document.createElement(tag);
  Object.assign(element, properties || {});
  if (text !== undefined) element.textContent = text;
  parent.appendChild(element);
  return element;
}

const path = (points) => "M" + points.map((point) => point.join(" ")).join("L");
const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
const short = (text, most) => text.length <= most ? text : text.slice(0, most / 2 - 1) + "…" + text.slice(1 - most / 2);

// ---- panels: a title, zoom buttons, and a view that scrolls

function preparePanel(id, pixelsPerUnit) {
  const section = byId(id);
  const bar = document.createElement("div");
  bar.className = "bar";
  const title = section.querySelector("h2");
  section.insertBefore(bar, title);
  bar.appendChild(title);
  html(title, "span", { className: "note" });
  zoom[id] = { scale: null, natural: pixelsPerUnit };
  for (const [sign, words, change] of [["−", "Smaller", 0.8], ["+", "Larger", 1.25], ["⤢", "Fit the panel", null]]) {
    const button = html(bar, "button", { type: "button", title: words }, sign);
    button.setAttribute("aria-label", `${words}: ${id}`);
    button.addEventListener("click", () => {
      zoom[id].scale = change === null ? null : currentScale(id) * change;
      fit(id);
    });
  }
  html(section, "div", { className: "view" });
}

const note = (id, text) => { byId(id).querySelector(".note").textContent = text; };
const view = (id) => byId(id).querySelector(".view");

function canvas(id, box) {
  const holder = view(id);
  const before = [holder.scrollLeft, holder.scrollTop];
  holder.replaceChildren();
  const svg = make(holder, "svg", { viewBox: box.join(" "), role: "img" });
  svg.setAttribute("aria-label", byId(id).querySelector("h2").firstChild.textContent);
  zoom[id].box = box;
  fit(id);
  [holder.scrollLeft, holder.scrollTop] = before;
  return svg;
}

function currentScale(id) {
  const { scale, natural, box } = zoom[id];
  if (scale !== null) return scale;
  // Pictures open whole, however small their letters get: the buttons make them larger, and then the view scrolls.
  const room = [(byId(id).clientWidth || 600) - 26, window.innerHeight * TALLEST - 4];
  return Math.min(natural * 1.15, room[0] / box[2], room[1] / box[3]);
}

function fit(id) {
  const svg = view(id).querySelector("svg");
  if (!svg) return;
  const scale = currentScale(id);
  svg.setAttribute("width", Math.floor(zoom[id].box[2] * scale));
  svg.setAttribute("height", Math.floor(zoom[id].box[3] * scale));
}

function reveal(id, x, y) {
  // Scroll a view so that a place of the picture can be seen, but only if it cannot.
  const holder = view(id);
  const { box } = zoom[id];
  const scale = currentScale(id);
  const [left, top] = [(x - box[0]) * scale, (y - box[1]) * scale];
  const margin = 30;
  if (left < holder.scrollLeft + margin || left > holder.scrollLeft + holder.clientWidth - margin) {
    holder.scrollLeft = left - holder.clientWidth / 2;
  }
  if (top < holder.scrollTop + margin || top > holder.scrollTop + holder.clientHeight - margin) {
    holder.scrollTop = top - holder.clientHeight / 2;
  }
}

// ---- what shapes and colours mean

function buildLegend() {
  const kinds = new Set(data.nodes.map((node) => node.kind));
  const list = byId("legend");
  const entry = (style, words) => {
    const item = html(list, "li");
    html(item, "span", { className: `sample ${style}` });
    item.append(words);
  };
  for (const [kind, symbol, words] of data.kinds) if (kinds.has(kind)) entry(`sample-${kind}`, `${symbol}: ${words}`);
  entry("round", "unknown");
  entry("", "known");
  entry("dark", "equation");
  entry("made", "equation that elimination made");
  entry("done", "done or no longer needed");
  entry("orange", "fill: no equation holds both");
}

// ---- shared shapes

function drawNode(parent, node) {
  const [x, y] = node.at;
  const group = make(parent, "g", { class: `node kind-${node.kind}` });
  make(group, "title", {}, node.known ? `${node.name}: known, ${node.size} entries` : `${node.name}: ${node.size} entries`);
  if (node.known) {
    const side = 2 * RADIUS * 0.88;
    make(group, "rect", { class: "shape", x: x - side / 2, y: y - side / 2, width: side, height: side });
  } else {
    make(group, "circle", { class: "shape", cx: x, cy: y, r: RADIUS });
  }
  const label = make(group, "text", { class: "label symbol", x, y: y + 0.11 });
  make(label, "tspan", {}, node.symbol);
  make(label, "tspan", { class: "number", dy: 0.07 }, String(node.number));
  return group;
}

function wrap(text, width, lines) {
  const clean = short(text, width * lines);
  const found = [];
  let line = "";
  for (const piece of clean.match(/[^_\-./ :]*[_\-./ :]|[^_\-./ :]+/g) || []) {
    if (line && line.length + piece.length > width) { found.push(line); line = ""; }
    line += piece;
    while (line.length > width) { found.push(line.slice(0, width)); line = line.slice(width); }
  }
  if (line) found.push(line);
  return found;
}

function drawHeadings(parent, headings) {
  for (const heading of headings) {
    const [x, y] = heading.at;
    const width = heading.kind === "link" ? 10 : heading.left ? 12 : 16;
    const lines = wrap(heading.text, width, 3);
    const up = heading.kind === "link" || heading.kind === "coupling" ? (lines.length - 1) / 2 : lines.length - 1;
    const style = `heading ${heading.kind === "link" ? "link" : "joint"}${heading.left ? " left" : ""}`;
    lines.forEach((line, index) => {
      make(parent, "text", { class: style, x: heading.left ? x - 0.38 : x, y: y + 0.225 * (index - up) }, line);
    });
    make(parent.lastChild, "title", {}, heading.text);
  }
}

function drawHead(parent, line, style) {
  const [x, y] = line[line.length - 1];
  // The direction of the last stretch, measured over more than one short piece.
  let from = line[line.length - 2];
  for (let i = line.length - 2; i >= 0 && Math.hypot(x - from[0], y - from[1]) < 0.15; i -= 1) from = line[i];
  const angle = Math.atan2(y - from[1], x - from[0]);
  const corner = (along, across) => [
    (x + along * Math.cos(angle) - across * Math.sin(angle)).toFixed(3),
    (y + along * Math.sin(angle) + across * Math.cos(angle)).toFixed(3),
  ];
  return make(parent, "path", { class: style, d: path([corner(0, 0), corner(-0.21, 0.085), corner(-0.21, -0.085)]) + "Z" });
}
