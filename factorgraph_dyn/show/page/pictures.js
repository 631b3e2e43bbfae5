// ---- the graph

const graph = {};

function buildGraph() {
  const svg = canvas("graph", data.bounds);
  const lines = make(svg, "g");
  graph.made = make(svg, "g");
  drawHeadings(make(svg, "g"), data.headings.graph);
  graph.dots = data.dots.map((dot) => {
    const group = make(lines, "g");
    for (const line of dot.lines) make(group, "path", { class: "line", d: path(line) });
    const circle = make(group, "circle", { class: "dot", cx: dot.at[0], cy: dot.at[1], r: 0.085 });
    make(circle, "title", {}, `${dot.name}: ${dot.rows} rows`);
    return group;
  });
  graph.nodes = data.nodes.map((node) => drawNode(svg, node));
  graph.neededBy = data.nodes.map(() => []);
  data.dots.forEach((dot, index) => {
    data.nodes.forEach((node, place) => {
      if (node.known && dot.lines.some((line) => same(line[line.length - 1], node.at))) graph.neededBy[place].push(index);
    });
  });
}

const same = (one, other) => Math.hypot(one[0] - other[0], one[1] - other[1]) < 1e-6;

function factorsLeft(ordering, count) {
  // Which equations of the graph are used up, and those that elimination made and has not used yet.
  const gone = new Set();
  const made = new Map();
  for (const step of ordering.steps.slice(0, count)) {
    for (const index of step.gathered) { gone.add(index); made.delete(index); }
    if (step.made) made.set(step.made.number, step);
  }
  return { gone, made };
}

function updateGraph() {
  const { gone, made } = factorsLeft(orderingNow(), state.step);
  const done = orderingNow().steps.slice(0, state.step).map((step) => step.variable);
  graph.dots.forEach((group, index) => group.classList.toggle("gone", gone.has(index)));
  graph.nodes.forEach((group, index) => {
    const now = done.length > 0 && done[done.length - 1] === index;
    const unused = data.nodes[index].known && graph.neededBy[index].every((factor) => gone.has(factor));
    group.classList.toggle("now", now);
    group.classList.toggle("faded", !now && (done.includes(index) || unused));
  });
  graph.made.replaceChildren();
  for (const step of made.values()) {
    const [x, y] = step.made.at;
    for (const tie of step.made.ties) make(graph.made, "path", { class: "made-line", d: path(tie) });
    const diamond = make(graph.made, "path", { class: "made", d: `M${x - 0.13} ${y}L${x} ${y - 0.13}L${x + 0.13} ${y}L${x} ${y + 0.13}Z` });
    make(diamond, "title", {}, `left by ${data.nodes[step.variable].name}: ${step.made.rows} rows over ${names(step.parents)}`);
  }
  note("graph", `${plural(data.dots.length - [...gone].filter((i) => i < data.dots.length).length + made.size, "equation")} left`);
}

const names = (indices) => indices.map((index) => data.nodes[index].name).join(", ");

// ---- the Bayes net

const dag = {};

function buildDag() {
  const svg = canvas("dag", orderingNow().bounds);
  drawHeadings(make(svg, "g"), data.headings.dag);
  const arrows = make(svg, "g");
  dag.arrows = orderingNow().steps.map((step) => step.parents.map((parent) => {
    const line = data.arrows[`${parent},${step.variable}`];
    const fill = step.fill.includes(parent) ? " fill" : "";
    return [make(arrows, "path", { class: `arrow${fill}`, d: path(line) }), drawHead(arrows, line, `head${fill}`)];
  }));
  const rank = new Map(orderingNow().steps.map((step, index) => [step.variable, index]));
  dag.nodes = data.nodes.map((node, index) => {
    if (node.known) return null;
    const group = drawNode(svg, node);
    make(group, "text", { class: "rank", x: orderingNow().ranks[index][0], y: orderingNow().ranks[index][1] + 0.07 }, String(rank.get(index) + 1));
    return group;
  });
  dag.rank = rank;
}

function updateDag() {
  let arrows = 0;
  let fill = 0;
  dag.arrows.forEach((list, index) => {
    for (const [line, head] of list) {
      line.classList.toggle("gone", index >= state.step);
      head.classList.toggle("gone", index >= state.step);
      line.classList.toggle("now", index === state.step - 1);
      if (index < state.step) { arrows += 1; fill += line.classList.contains("fill") ? 1 : 0; }
    }
  });
  dag.nodes.forEach((group, index) => {
    if (!group) return;
    group.classList.toggle("faded", dag.rank.get(index) >= state.step);
    group.classList.toggle("now", dag.rank.get(index) === state.step - 1);
  });
  note("dag", `${plural(arrows, "arrow")}, ${fill} fill`);
}

// ---- the matrix: rows of R on top, what is left of the equations below

const scaled = (size) => 0.4 + 0.1 * Math.min(size, 6);
const KINDS = new Set(["A", "F", "a", "tau", "lambda", "acceleration", "wrench", "torque", "coupling"]);
const cellClass = (kind) => "cell-" + (KINDS.has(kind) ? kind : "other");

function matrixRows() {
  const ordering = orderingNow();
  const { gone, made } = factorsLeft(ordering, state.step);
  const rows = ordering.steps.slice(0, state.step).map((step) => {
    const node = data.nodes[step.variable];
    const cells = [[step.variable, cellClass(node.kind)]];
    for (const parent of step.parents) cells.push([parent, step.fill.includes(parent) ? "cell-fill" : cellClass(node.kind)]);
    return { name: node.label, full: node.name, size: node.size, cells, done: true };
  });
  const first = new Map(ordering.steps.map((step, index) => [step.variable, index]));
  const left = [];
  data.dots.forEach((dot, index) => {
    if (gone.has(index) || !dot.holds.length) return;
    left.push({ name: short(dot.name, 24), full: dot.name, size: dot.rows, cells: dot.holds.map((held) => [held, cellClass(dot.kind)]) });
  });
  for (const step of made.values()) {
    const name = `left by ${data.nodes[step.variable].label}`;
    left.push({ name, full: `left by ${data.nodes[step.variable].name}`, size: step.made.rows, cells: step.parents.map((held) => [held, "cell-made"]) });
  }
  const soonest = (row) => Math.min(...row.cells.map(([held]) => first.get(held)));
  left.sort((one, other) => soonest(one) - soonest(other));
  return rows.concat(left);
}

function updateMatrix() {
  const ordering = orderingNow();
  const columns = ordering.steps.map((step) => data.nodes[step.variable]);
  const place = new Map();
  let x = 0;
  for (const step of ordering.steps) { place.set(step.variable, x); x += scaled(data.nodes[step.variable].size); }
  const rows = matrixRows();
  const height = rows.reduce((sum, row) => sum + scaled(row.size), 0);
  const tallest = data.dots.reduce((sum, dot) => sum + scaled(dot.rows), 0);
  const svg = canvas("matrix", [-6.6, -2.2, x + 7, Math.max(height, tallest) + 2.5]);
  let y = 0;
  rows.forEach((row, index) => {
    const tall = scaled(row.size);
    if (row.done) make(svg, "rect", { class: index === state.step - 1 ? "now-band" : "done-band", x: 0, y, width: x, height: tall });
    row.y = y;
    y += tall;
    make(svg, "line", { class: "grid", x1: 0, x2: x, y1: y, y2: y });
    const words = make(svg, "text", { class: "row-name", x: -0.25, y: y - tall / 2 + 0.14 }, row.name);
    make(words, "title", {}, `${row.full}: ${row.size} rows`);
  });
  columns.forEach((node, index) => {
    const at = place.get(ordering.steps[index].variable);
    const wide = scaled(node.size);
    make(svg, "line", { class: "grid", x1: at, x2: at, y1: 0, y2: y });
    const words = make(svg, "text", { class: "column-name tick", transform: `translate(${at + wide / 2 + 0.14} -0.2) rotate(-90)` }, node.label);
    make(words, "title", {}, node.name);
  });
  for (const row of rows) {
    for (const [held, style] of row.cells) {
      const wide = scaled(data.nodes[held].size);
      const cell = make(svg, "rect", { class: style, x: place.get(held) + 0.04, y: row.y + 0.04, width: wide - 0.08, height: scaled(row.size) - 0.08 });
      make(cell, "title", {}, `${row.full}, ${data.nodes[held].name}: ${row.size} × ${data.nodes[held].size}`);
    }
  }
  make(svg, "rect", { class: "frame", x: 0, y: 0, width: x, height: y });
  if (state.step) {
    const variable = ordering.steps[state.step - 1].variable;
    reveal("matrix", place.get(variable), rows[state.step - 1].y);
  }
  note("matrix", `${plural(state.step, "row")} of R, ${plural(rows.length - state.step, "equation")} left`);
}

// ---- the clique tree

const tree = {};

function buildTree() {
  const cliques = orderingNow().cliques;
  const levels = Math.max(0, ...cliques.map((clique) => clique.level)) + 1;
  const tall = Array.from({ length: levels }, (_, level) =>
    0.62 + 0.15 * (Math.max(1, ...cliques.filter((c) => c.level === level).map((c) => c.lines.length)) - 1));
  const top = new Array(levels);
  let height = 0;
  for (let level = levels - 1; level >= 0; level -= 1) { top[level] = height; height += tall[level]; }
  const left = Math.min(...cliques.map((c) => c.x - c.width / 2)) - 1.3;
  const right = Math.max(...cliques.map((c) => c.x + c.width / 2)) + 0.2;
  const svg = canvas("tree", [left, 0, right - left, height]);
  for (let level = 0; level < levels; level += 1) {
    if (level % 2 === 0) make(svg, "rect", { class: "done-band", x: left, y: top[level], width: right - left, height: tall[level] });
    const count = cliques.filter((clique) => clique.level === level).length;
    make(svg, "text", { class: "level", x: left + 0.08, y: top[level] + tall[level] / 2 + 0.03 },
      `step ${level + 1}` + (count > 1 ? `: ${count} at once` : ""));
  }
  const middle = (clique) => top[clique.level] + tall[clique.level] / 2;
  for (const clique of cliques) {
    if (clique.parent === null) continue;
    const above = cliques[clique.parent];
    const bus = top[above.level] + tall[above.level] - 0.02;
    make(svg, "path", { class: "tree-line", d: path([[clique.x, middle(clique)], [clique.x, bus], [above.x, bus], [above.x, middle(above)]]) });
  }
  tree.cliques = cliques.map((clique) => {
    const kind = data.nodes[clique.frontals[0]].kind;
    const group = make(svg, "g", { class: `clique kind-${kind}` });
    const high = 0.3 + 0.15 * (clique.lines.length - 1);
    make(group, "rect", { class: "shape", x: clique.x - clique.width / 2, y: middle(clique) - high / 2, width: clique.width, height: high, rx: 0.08 });
    clique.lines.forEach((line, index) => {
      make(group, "text", { x: clique.x, y: middle(clique) + 0.04 + 0.15 * (index - (clique.lines.length - 1) / 2) }, line);
    });
    make(group, "title", {}, names(clique.frontals));
    group.middle = [clique.x, middle(clique)];
    return group;
  });
  note("tree", `${plural(cliques.length, "clique")} in ${plural(levels, "parallel step")}`);
}

function updateTree() {
  const done = new Set(orderingNow().steps.slice(0, state.step).map((step) => step.variable));
  const now = state.step ? orderingNow().steps[state.step - 1].variable : null;
  orderingNow().cliques.forEach((clique, index) => {
    tree.cliques[index].classList.toggle("waiting", !clique.frontals.some((held) => done.has(held)));
    tree.cliques[index].classList.toggle("now", clique.frontals.includes(now));
    if (clique.frontals.includes(now)) reveal("tree", ...tree.cliques[index].middle);
  });
}

// ---- the comparison

const COLUMN = { ordering: "ordering", nonzeros: "entries of R", fill: "fill", clique: "widest clique", depth: "parallel steps",
  time_us: "GTSAM, µs", error: "error", note: "note", operations: "operations", kernel_ns: "kernel, ns a state", kernel_error: "kernel error", pivot: "smallest pivot" };
const NO_COST = new Set(["error", "kernel_error", "pivot"]);
const number = (value) => Number.isInteger(value) ? String(value) : Math.abs(value) < 0.01 && value !== 0 ? value.toExponential(1) : value.toPrecision(3);

function buildComparison() {
  const rows = data.comparison;
  const section = byId("comparison");
  if (!rows.length) { section.hidden = true; return; }
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))]
    .filter((column) => rows.some((row) => row[column] !== null && row[column] !== undefined && row[column] !== ""));
  const numeric = (column) => rows.some((row) => typeof row[column] === "number");
  const table = html(section, "table");
  const head = html(html(table, "thead"), "tr");
  for (const column of columns) html(head, "th", { className: numeric(column) ? "" : "text" }, COLUMN[column] || column.replaceAll("_", " "));
  const body = html(table, "tbody");
  for (const row of rows) {
    const line = html(body, "tr");
    const index = data.orderings.findIndex((ordering) => ordering.name === row.ordering);
    line.dataset.ordering = row.ordering;
    if (index >= 0) line.addEventListener("click", () => choose(index));
    for (const column of columns) {
      const value = row[column];
      const cell = html(line, "td", { className: numeric(column) ? "" : "text" });
      if (typeof value !== "number") { cell.textContent = value === null || value === undefined ? "" : String(value); continue; }
      const all = rows.map((other) => other[column]).filter((other) => typeof other === "number");
      cell.textContent = number(value);
      const most = Math.max(...all);
      if (value === Math.min(...all) && !NO_COST.has(column)) cell.classList.add("best");
      if (most > 0 && !NO_COST.has(column)) {
        const part = Math.max(0, 100 * value / most).toFixed(1);
        cell.style.background = `linear-gradient(to left, var(--bar) ${part}%, transparent ${part}%)`;
      }
    }
  }
}
