"use strict";
// The page: a scene to turn, sliders, a time bar and curves. Names are set as text only.

(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const made = (tag, text) => Object.assign(document.createElement(tag), { textContent: text ?? "" });
  const last = data.q.length - 1, is_timed = data.curves.length > 0;
  let q = data.q[0].slice(), moment = 0, playing = null;

  // ---- where things are, and how thick they are drawn
  const up = new THREE.Vector3(...data.up), first = around(seen([data.q[0], data.q[Math.floor(last / 2)], data.q[last]]));
  const thick = thickness(first.spread), radius = first.spread + 3 * thick;

  function around(points) {
    const centre = new THREE.Vector3(...["x", "y", "z"].map((k) => {
      const values = points.map((p) => p[k]);
      return (values.reduce((a, b) => Math.min(a, b)) + values.reduce((a, b) => Math.max(a, b))) / 2;
    }));
    const spread = points.reduce((most, p) => Math.max(most, p.distanceTo(centre)), 0);
    return { points, centre, spread: spread || data.size / 2 };
  }
  function seen(rows) {
    const found = [];
    for (const row of rows) {
      const poses = motion.linkPoses(data, row), put = (p, pose) => found.push(new THREE.Vector3(...p).applyMatrix4(pose));
      poses.forEach((pose, k) => { put([0, 0, 0], pose); data.links[k].ends.forEach((end) => put(end, pose)); });
      data.visuals.forEach((visual) => visual.box.forEach((corner) => put(corner, poses[visual.link])));
    }
    return found;
  }
  function thickness(reach) {
    const lengths = data.links.flatMap((link) => link.ends.map((end) => Math.hypot(...end))).sort((a, b) => a - b);
    const usual = lengths.length ? lengths[Math.floor(lengths.length / 2)] : reach;
    return Math.min(Math.max(0.1 * usual, 0.003 * reach), 0.035 * reach);
  }

  // ---- scene
  const scene = new THREE.Scene();
  scene.background = new THREE.Color(0xf5f7f9);
  const renderer = new THREE.WebGLRenderer({ canvas: at("scene"), antialias: true, preserveDrawingBuffer: true });
  renderer.setPixelRatio(Math.min(window.devicePixelRatio, 2));
  const camera = new THREE.PerspectiveCamera(40, 1, radius * 0.01, radius * 200);
  camera.up.copy(up);
  const controls = new THREE.OrbitControls(camera, renderer.domElement);
  scene.add(new THREE.HemisphereLight(0xffffff, 0xa9b3bd, 2.2));
  const sun = new THREE.DirectionalLight(0xffffff, 1.6);
  scene.add(sun, sun.target);

  const base = new Set(data.links.keys());
  data.joints.forEach((joint) => base.delete(joint.child));
  const links = data.links.map(() => {
    const group = new THREE.Group();
    group.matrixAutoUpdate = false;
    scene.add(group);
    return group;
  });
  const layers = {
    shapes: [], bodies: [], axes: [], "centres of mass": [], inertias: [], frames: [], loops: [], wrenches: [], ground: [],
  };
  function show(layer, parent, object) {
    parent.add(object);
    layers[layer].push(object);
    return object;
  }
  const geometries = data.meshes.map(bodies.mesh);
  for (const visual of data.visuals) {
    show("shapes", links[visual.link], bodies.visual(visual, geometries, data.links[visual.link]));
  }
  data.links.forEach((link, k) => {
    // Where a mesh cannot be drawn, the body stands for it.
    const layer = data.missing.includes(k) && data.visuals.length ? "shapes" : "bodies";
    show(layer, links[k], bodies.link(link, thick, base.has(k)));
    if (link.mass) show("centres of mass", links[k], bodies.centre(link, thick));
    if (link.ellipsoid) show("inertias", links[k], bodies.inertia(link));
  });
  for (const joint of data.joints) {
    if (!joint.nq) continue;
    const colour = joint.actuated ? COLOURS.axis : COLOURS.passive;
    const name = `${joint.kind} joint ${joint.name}` + (joint.actuated ? "" : ", passive");
    show("axes", links[joint.child], bodies.named(bodies.joint(joint, thick, colour), name));
  }
  for (const loop of data.loops) {
    const mark = bodies.named(bodies.joint(loop, thick * 1.15, COLOURS.loop), `${loop.kind} loop ${loop.name}`);
    const place = new THREE.Group().add(mark);
    place.applyMatrix4(motion.matrix(loop.T_successor));
    show("loops", links[loop.successor], place);
  }
  for (const frame of data.frames) show("frames", links[frame.link], bodies.frame(frame, thick));
  const largest = { force: 0, moment: 0 };
  for (const w of data.arrows.flatMap((arrow) => arrow.wrench)) {
    largest.moment = Math.max(largest.moment, Math.hypot(w[0], w[1], w[2]));
    largest.force = Math.max(largest.force, Math.hypot(w[3], w[4], w[5]));
  }
  const arrows = data.arrows.map((given) => {
    const group = show("wrenches", scene, new THREE.Group());
    const pair = { given, force: bodies.arrow(COLOURS.force, thick), moment: bodies.arrow(COLOURS.moment, thick) };
    group.add(pair.force, pair.moment);
    return pair;
  });
  const grid = show("ground", scene, new THREE.GridHelper(radius * 8, 32, 0xb8c2cc, 0xdde3e8));
  grid.quaternion.setFromUnitVectors(new THREE.Vector3(0, 1, 0), up);

  function point({ given, force, moment: turn }) {
    const T = links[given.link].matrix.clone().multiply(motion.matrix(given.T));
    const from = new THREE.Vector3().setFromMatrixPosition(T), w = given.wrench[Math.min(moment, given.wrench.length - 1)];
    const turned = new THREE.Quaternion().setFromRotationMatrix(given.world ? new THREE.Matrix4() : T);
    const way = (x, y, z, most) => new THREE.Vector3(x, y, z).multiplyScalar(most ? radius * 0.5 / most : 0).applyQuaternion(turned);
    const size = (x, y, z) => +Math.hypot(x, y, z).toPrecision(3);
    force.userData.point(from, way(w[3], w[4], w[5], largest.force));
    turn.userData.point(from, way(w[0], w[1], w[2], largest.moment));
    bodies.named(force, `force at ${given.name}, ${size(w[3], w[4], w[5])} N`);
    bodies.named(turn, `moment at ${given.name}, ${size(w[0], w[1], w[2])} N m`);
  }
  function place() {
    motion.linkPoses(data, q).forEach((pose, k) => { links[k].matrix.copy(pose); links[k].matrixWorldNeedsUpdate = true; });
    arrows.forEach(point);
    sliders.forEach((slider) => slider.show());
    render();
  }
  function render() { renderer.render(scene, camera); }

  // The part of the stage's height that the choices take where they reach across it, as on a phone.
  function underChoices() {
    const choices = at("choices"), stage = choices.parentElement;
    return choices.offsetWidth > 0.8 * stage.clientWidth ? (choices.offsetTop + choices.offsetHeight) / stage.clientHeight : 0;
  }

  function fit({ points, centre, spread }) {
    const radius = spread + 3 * thick;
    const heights = points.map((p) => p.dot(up));
    grid.position.copy(centre).addScaledVector(up, heights.reduce((a, b) => Math.min(a, b)) - 1.2 * thick - centre.dot(up));
    const side = Math.abs(up.x) < 0.9 ? new THREE.Vector3(1, 0, 0) : new THREE.Vector3(0, 1, 0);
    side.addScaledVector(up, -side.dot(up)).normalize();
    const front = up.clone().cross(side);
    const deep = points.reduce((most, p) => Math.max(most, Math.abs(p.clone().sub(centre).dot(front))), 0);
    const across = deep < 0.05 * radius ? 0.35 : 1; // planar linkages are seen from the front
    const way = front.multiplyScalar(-1).addScaledVector(side, across).addScaledVector(up, 0.55 * across + 0.1).normalize();
    const covered = underChoices(), narrow = Math.min(1 - covered, camera.aspect), aspect = camera.aspect;
    camera.setViewOffset(1, 1, 0, -covered / 2, 1, 1); // parts of the stage; it forgets the aspect
    camera.aspect = aspect;
    camera.updateProjectionMatrix();
    camera.position.copy(centre).addScaledVector(way, 1.08 * radius / Math.sin(camera.fov * Math.PI / 360) / narrow);
    controls.target.copy(centre);
    sun.position.copy(camera.position).addScaledVector(up, radius);
    sun.target.position.copy(centre);
    controls.update();
  }

  // ---- sliders, those of motors first
  const sliders = [], is_tied = data.loops.length || data.couplings.length;
  const note = data.loops.length ? "Loops stay closed: other joints follow." : is_tied ? "Coupled joints follow each other." : "";
  function slider(joint, handle) {
    const reach = handle.turns ? Math.PI : Math.max(data.size, radius);
    const [low, high] = joint.nq === 1 && joint.limits ? joint.limits : [-reach, reach];
    const row = made("label"), name = made("span", handle.name), value = made("output"), input = made("input");
    row.className = "slider";
    name.title = `${joint.kind} joint ${joint.name}`;
    const start = handle.get(data.q[0]); // a configuration beyond limits can be shown, too
    Object.assign(input, {
      type: "range", step: "any", min: Math.min(start, Math.max(low ?? -reach, -3 * reach)), max: Math.max(start, Math.min(high ?? reach, 3 * reach)),
    });
    row.append(name, value, input);
    const show = () => {
      const x = handle.get(q);
      if (document.activeElement !== input || playing) input.value = x;
      value.textContent = handle.turns ? `${(x * 180 / Math.PI).toFixed(1)}°` : `${+x.toPrecision(3)} m`;
    };
    input.addEventListener("input", () => {
      stop();
      const arrived = motion.slide(data, q, handle, +input.value);
      at("note").textContent = arrived ? note : `Loops cannot be closed with ${handle.name} further that way.`;
      place();
    });
    input.addEventListener("change", () => { input.value = handle.get(q); });
    at("sliders").append(row);
    sliders.push({ show });
  }
  function panel(joints, title) {
    const rows = joints.flatMap((joint) => motion.handles(joint).map((handle) => [joint, handle]));
    if (rows.length && title) at("sliders").append(made("h3", title));
    rows.forEach((row) => slider(...row));
  }
  const motors = data.joints.filter((joint) => joint.actuated), passive = data.joints.filter((joint) => !joint.actuated);
  panel(motors, "");
  panel(passive, motors.some((joint) => joint.nq) ? "Passive" : "");
  at("note").textContent = note;
  at("joints").hidden = !sliders.length;
  at("reset").addEventListener("click", () => { stop(); go(0); at("note").textContent = note; });
  if (data.missing.length) {
    const names = data.missing.slice(0, 6).map((k) => data.links[k].name).join(", ") + (data.missing.length > 6 ? ", …" : "");
    at("missing").textContent = `Meshes that could not be read or are too large, with bodies in their place: ${names}.`;
  }

  // ---- what to show
  const off = new Set(["centres of mass", "inertias"]);
  if (data.frames.length > 12) off.add("frames");
  if (data.visuals.length) ["bodies", "axes"].forEach((name) => off.add(name));
  function choice(name, checked, apply) {
    const label = made("label"), box = made("input");
    Object.assign(box, { type: "checkbox", checked });
    box.addEventListener("change", () => { apply(box.checked); render(); });
    label.append(box, ` ${name}`);
    at("choices").append(label);
    apply(checked);
  }
  for (const [name, objects] of Object.entries(layers)) {
    if (objects.length && (name !== "bodies" || data.visuals.length)) {
      choice(name, !off.has(name), (on) => objects.forEach((object) => { object.visible = on; }));
    }
  }
  const materials = layers.shapes.map((object) => object.userData.material).filter(Boolean);
  const own = materials.map(({ opacity, transparent, depthWrite }) => ({ opacity, transparent, depthWrite }));
  if (materials.length) {
    choice("see through", false, (on) => materials.forEach((material, k) => {
      Object.assign(material, on ? { opacity: 0.3 * own[k].opacity, transparent: true, depthWrite: false } : own[k]);
      material.needsUpdate = true;
    }));
  }

  const refit = made("button", "fit");
  refit.title = "Bring the whole mechanism into view";
  refit.addEventListener("click", () => { fit(around(seen([q]))); render(); });
  at("choices").append(refit);

  // ---- time
  const SHAPES = { Play: "M3 1 L14 8 L3 15 Z", Pause: "M3 1 H6.5 V15 H3 Z M9.5 1 H13 V15 H9.5 Z" };
  at("time").hidden = last < 1;
  at("moment").max = last;
  function go(k) {
    moment = k;
    q = data.q[k].slice();
    at("moment").value = k;
    at("clock").textContent = is_timed ? `${+data.times[k].toPrecision(4)} s` : `${k + 1} / ${last + 1}`;
    place();
    plot();
  }
  function button(word) {
    at("play").setAttribute("aria-label", word);
    at("play").querySelector("path").setAttribute("d", SHAPES[word]);
  }
  function stop() {
    if (playing) cancelAnimationFrame(playing);
    playing = null;
    button("Play");
  }
  // A second of the motion takes a second, but for motions that nobody could follow, or would wait for.
  const duration = data.times[last] - data.times[0];
  const pace = is_timed && duration > 0.5 && duration < 120 ? 1 : duration / Math.min(20, Math.max(4, (last + 1) / 5));
  function play() {
    if (playing) return stop();
    const from = moment >= last ? 0 : moment, begun = performance.now();
    button("Pause");
    const tick = (now) => {
      const time = data.times[from] + Math.max(0, now - begun) / 1000 * pace;
      let k = from;
      while (k < last && data.times[k + 1] <= time) k++;
      go(k);
      if (k >= last) return stop();
      playing = requestAnimationFrame(tick);
    };
    playing = requestAnimationFrame(tick);
    return undefined;
  }
  button("Play");
  at("play").addEventListener("click", play);
  at("moment").addEventListener("input", () => { stop(); go(+at("moment").value); });
  document.addEventListener("keydown", (event) => {
    if (event.key === " " && last && !["BUTTON", "SELECT"].includes(event.target.tagName)) { event.preventDefault(); play(); }
  });

  // ---- curves
  at("plot").hidden = !is_timed;
  data.curves.forEach(({ title }, k) => at("quantity").append(Object.assign(made("option", title), { value: k })));
  const chosen = () => data.curves[+at("quantity").value];
  at("quantity").addEventListener("change", () => { curves.legend(at("legend"), chosen().names); plot(); });
  if (is_timed) curves.legend(at("legend"), chosen().names);
  function plot() { if (is_timed) curves.draw(at("curves"), chosen(), data.times, moment); }

  // ---- names
  const pointer = new THREE.Vector2(), ray = new THREE.Raycaster();
  ray.params.Line.threshold = thick * 0.3;
  function tell(event) {
    const box = at("scene").getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    pointer.set(x / box.width * 2 - 1, 1 - y / box.height * 2);
    ray.setFromCamera(pointer, camera);
    const visible = (object) => { for (let o = object; o; o = o.parent) if (!o.visible) return false; return true; };
    const hits = ray.intersectObjects(scene.children, true).map((hit) => hit.object).filter((o) => o.userData.name && visible(o));
    const solid = hits.find((o) => !o.material?.transparent) ?? hits[0];
    at("tip").hidden = !solid;
    at("tip").textContent = solid ? solid.userData.name : "";
    Object.assign(at("tip").style, x < box.width / 2 ? { left: `${x + 14}px`, right: "auto" } : { left: "auto", right: `${box.width - x + 10}px` });
    at("tip").style.top = `${Math.max(4, y - 28)}px`;
  }
  at("scene").addEventListener("pointermove", tell);
  at("scene").addEventListener("pointerdown", tell);
  at("scene").addEventListener("pointerleave", () => { at("tip").hidden = true; });

  function resize() {
    const { clientWidth, clientHeight } = at("stage");
    renderer.setSize(clientWidth, clientHeight, false);
    camera.aspect = clientWidth / clientHeight;
    camera.updateProjectionMatrix();
    render();
    plot();
  }
  at("title").textContent = data.name;
  controls.addEventListener("change", render);
  window.addEventListener("resize", resize);
  resize();
  fit(first);
  go(0);
})();
