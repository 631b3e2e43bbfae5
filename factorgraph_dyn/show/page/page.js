// ---- moving about

function describe() {
  const steps = orderingNow().steps;
  if (state.step === 0) return `Before elimination: ${steps.length} variables, ${data.dots.length} equations. Press → to eliminate the first one.`;
  const step = steps[state.step - 1];
  const node = data.nodes[step.variable];
  const known = (index) => index < data.dots.length ? data.dots[index].name : `what ${data.nodes[steps.find((s) => s.made && s.made.number === index).variable].name} left`;
  const gathered = step.gathered.map(known).join(", ");
  const given = step.parents.length ? `It now depends on ${names(step.parents)}.` : "It depends on nothing: it is solved.";
  const left = step.made ? ` ${plural(step.made.rows, "row")} ${step.made.rows === 1 ? "is" : "are"} left over ${step.parents.length > 1 ? "them" : "it"}.` : " No row is left over.";
  return `Eliminate ${node.name}, gathering ${gathered}. ${given}${left}`;
}

function update() {
  const steps = orderingNow().steps;
  byId("slider").max = steps.length;
  byId("slider").value = state.step;
  byId("count").textContent = `step ${state.step} of ${steps.length}`;
  byId("words").textContent = describe();
  byId("ordering").selectedIndex = state.ordering;
  byId("first").disabled = byId("back").disabled = state.step === 0;
  byId("last").disabled = byId("next").disabled = state.step === steps.length;
  for (const row of document.querySelectorAll("#comparison tbody tr")) row.classList.toggle("chosen", row.dataset.ordering === orderingNow().name);
  updateGraph();
  updateDag();
  if (state.step) {
    const at = data.nodes[steps[state.step - 1].variable].at;
    reveal("graph", ...at);
    reveal("dag", ...at);
  }
  updateMatrix();
  updateTree();
  const place = new URLSearchParams({ ordering: orderingNow().name, step: state.step });
  try { history.replaceState(null, "", "#" + place); } catch { /* some viewers forbid it */ }
}

function go(step) {
  state.step = Math.max(0, Math.min(orderingNow().steps.length, step));
  update();
}

function choose(index, step) {
  pause();
  state.ordering = Math.max(0, Math.min(data.orderings.length - 1, index));
  buildDag();
  buildTree();
  go(step === undefined ? Math.min(state.step, orderingNow().steps.length) : step);
}

function showPlay(words, shape) {
  byId("play").querySelector("path").setAttribute("d", shape);
  byId("play").setAttribute("aria-label", words);
}

function pause() {
  clearInterval(state.timer);
  state.timer = null;
  showPlay("Play", "M4 2L14 8L4 14Z");
}

function play() {
  if (state.timer !== null) { pause(); return; }
  if (state.step === orderingNow().steps.length) go(0);
  showPlay("Pause", "M3 2H7V14H3ZM9 2H13V14H9Z");
  state.timer = setInterval(() => {
    go(state.step + 1);
    if (state.step === orderingNow().steps.length) pause();
  }, 700);
}

const KEYS = {
  ArrowRight: () => go(state.step + 1), ArrowLeft: () => go(state.step - 1),
  Home: () => go(0), End: () => go(orderingNow().steps.length), " ": play,
  ArrowDown: () => choose(state.ordering + 1), ArrowUp: () => choose(state.ordering - 1),
};

function start() {
  byId("title").textContent = `${data.mechanism}: ${data.problem} dynamics, elimination step by step`;
  byId("facts").textContent = data.facts.join(" · ");
  for (const ordering of data.orderings) html(byId("ordering"), "option", {}, ordering.name);
  preparePanel("graph", 62);
  preparePanel("dag", 62);
  preparePanel("matrix", 27);
  preparePanel("tree", 110);
  buildLegend();
  buildGraph();
  buildComparison();
  byId("ordering").addEventListener("change", (event) => choose(event.target.selectedIndex));
  byId("slider").addEventListener("input", (event) => { pause(); go(Number(event.target.value)); });
  byId("first").addEventListener("click", () => { pause(); go(0); });
  byId("back").addEventListener("click", () => { pause(); go(state.step - 1); });
  byId("next").addEventListener("click", () => { pause(); go(state.step + 1); });
  byId("last").addEventListener("click", () => { pause(); go(orderingNow().steps.length); });
  byId("play").addEventListener("click", play);
  document.addEventListener("keydown", (event) => {
    const act = KEYS[event.key];
    const inside = event.target.tagName;
    if (!act || event.ctrlKey || event.altKey || event.metaKey || inside === "SELECT" || (inside === "BUTTON" && event.key === " ")) return;
    event.preventDefault();
    if (event.key !== " ") pause();
    act();
  });
  const fitAll = () => ["graph", "dag", "matrix", "tree"].forEach(fit);
  window.addEventListener("resize", fitAll);
  new ResizeObserver(fitAll).observe(document.querySelector("main")); // the page's own scroll bar takes room, too
  const place = new URLSearchParams(location.hash.slice(1));
  const found = data.orderings.findIndex((ordering) => ordering.name === place.get("ordering"));
  choose(Math.max(found, 0), Number.parseInt(place.get("step"), 10) || 0);
}

start();
