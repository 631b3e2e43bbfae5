"use strict";
// The page: a scene to turn, sliders, a time bar and curves. Names are set as text only.

(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const thick = data.size * 0.032;
  let q = data.q[0].slice(), moment = 0, playing = null;

  // ---- scene
  const up = new THREE.Vector3(...data.up), scene = new THREE.Scene();
  scene.background = new THREE.Color(0xf5f7f9);
  const renderer = new THREE.WebGLRenderer({ canvas: at("scene"), antialias: true, preserveDrawingBuffer: true });
  renderer.setPixelRatio(Math.min(window.devicePixelRatio, 2));
  const camera = new THREE.PerspectiveCamera(40, 1, data.size * 0.002, data.size * 400);
  camera.up.copy(up);
  const controls = new THREE.OrbitControls(camera, renderer.domElement);
  scene.add(new THREE.HemisphereLight(0xffffff, 0xa9b3bd, 2.2));
  const sun = new THREE.DirectionalLight(0xffffff, 1.6);
  scene.add(sun);

  const base = new Set(data.links.keys());
  data.joints.forEach((joint) => base.delete(joint.child));
  const links = data.links.map((link, k) => {
    const group = new THREE.Group();
    group.matrixAutoUpdate = false;
    scene.add(group);
    return group;
  });
  const layers = { bodies: [], axes: [], "centres of mass": [], inertias: [], frames: [], loops: [], wrenches: [] };
  function show(layer, parent, object) {
    parent.add(object);
    layers[layer].push(object);
    return object;
  }
  data.links.forEach((link, k) => {
    show("bodies", links[k], bodies.link(link, thick, base.has(k)));
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
  for (const arrow of data.arrows) {
    for (const w of arrow.wrench) {
      largest.moment = Math.max(largest.moment, Math.hypot(w[0], w[1], w[2]));
      largest.force = Math.max(largest.force, Math.hypot(w[3], w[4], w[5]));
    }
  }
  const arrows = data.arrows.map((given) => ({
    given,
    force: show("wrenches", scene, bodies.named(bodies.arrow(COLOURS.force, thick), `force on ${given.name}`)),
    moment: show("wrenches", scene, bodies.named(bodies.arrow(COLOURS.moment, thick), `moment on ${given.name}`)),
  }));

  const grid = new THREE.GridHelper(data.size * 4, 16, 0xb8c2cc, 0xdde3e8);
  grid.quaternion.setFromUnitVectors(new THREE.Vector3(0, 1, 0), up);
  scene.add(grid);

  function place() {
    motion.linkPoses(data, q).forEach((pose, k) => { links[k].matrix.copy(pose); links[k].matrixWorldNeedsUpdate = true; });
    for (const { given, force, moment: turn } of arrows) {
      const T = links[given.link].matrix.clone().multiply(motion.matrix(given.T));
      const from = new THREE.Vector3().setFromMatrixPosition(T), w = given.wrench[Math.min(moment, given.wrench.length - 1)];
      const long = (x, y, z, most) => new THREE.Vector3(x, y, z).multiplyScalar(most ? data.size * 0.6 / most : 0)
        .applyQuaternion(new THREE.Quaternion().setFromRotationMatrix(T));
      force.userData.point(from, long(w[3], w[4], w[5], largest.force));
      turn.userData.point(from, long(w[0], w[1], w[2], largest.moment));
    }
    for (const slider of sliders) slider.show();
    render();
  }

  function render() { renderer.render(scene, camera); }

  function fit() {
    const points = [];
    for (const row of [data.q[0], data.q[Math.floor(data.q.length / 2)], data.q[data.q.length - 1]]) {
      motion.linkPoses(data, row).forEach((pose, k) => {
        points.push(new THREE.Vector3().setFromMatrixPosition(pose));
        data.links[k].ends.forEach((end) => points.push(new THREE.Vector3(...end).applyMatrix4(pose)));
      });
    }
    const centre = points.reduce((sum, p) => sum.add(p), new THREE.Vector3()).divideScalar(points.length);
    const radius = Math.max(...points.map((p) => p.distanceTo(centre)), data.size * 0.2) + 3 * thick;
    const lowest = Math.min(...points.map((p) => p.dot(up)));
    grid.position.copy(up).multiplyScalar(lowest - 1.2 * thick);
    const side = Math.abs(up.x) < 0.9 ? new THREE.Vector3(1, 0, 0) : new THREE.Vector3(0, 1, 0);
    side.addScaledVector(up, -side.dot(up)).normalize();
    const front = up.clone().cross(side);
    const flat = ["x", "y", "z"].map((k) => Math.max(...points.map((p) => p[k])) - Math.min(...points.map((p) => p[k])));
    const across = flat[1] < 0.05 * radius ? 0.35 : 1; // planar linkages are seen from the front
    const way = front.multiplyScalar(-1).addScaledVector(side, across).addScaledVector(up, 0.55 * across + 0.1).normalize();
    const narrow = Math.min(1, camera.aspect);
    camera.position.copy(centre).addScaledVector(way, 1.25 * radius / Math.sin(camera.fov * Math.PI / 360) / narrow);
    controls.target.copy(centre);
    sun.position.copy(camera.position).addScaledVector(up, radius);
    sun.target.position.copy(centre);
    scene.add(sun.target);
    controls.update();
  }

  // ---- sliders
  const sliders = [];
  function slider(joint, k) {
    const turns = joint.turns[k], reach = turns ? Math.PI : data.size;
    const [low, high] = joint.limits ?? [-reach, reach];
    const row = document.createElement("label"), name = document.createElement("span"), value = document.createElement("output");
    const input = document.createElement("input");
    row.className = "slider";
    name.textContent = joint.nq > 1 ? `${joint.name} ${k + 1}` : joint.name;
    name.title = `${joint.kind} joint ${joint.name}`;
    Object.assign(input, { type: "range", min: Math.max(low, -3 * reach), max: Math.min(high, 3 * reach), step: "any" });
    row.append(name, value, input);
    const show = () => {
      const x = q[joint.q + k];
      if (document.activeElement !== input || playing) input.value = x;
      value.textContent = turns ? `${(x * 180 / Math.PI).toFixed(1)}°` : `${+x.toPrecision(3)} m`;
    };
    input.addEventListener("input", () => {
      stop();
      const before = q.slice();
      q[joint.q + k] = +input.value;
      const closed = motion.close(data, q, joint.q + k);
      if (!closed) q = before;
      at("note").textContent = closed ? note : `The loops cannot be closed with ${joint.name} there.`;
      place();
    });
    at("sliders").append(row);
    sliders.push({ show });
  }
  for (const joint of data.joints) joint.screws.forEach((_, k) => slider(joint, k));
  const note = data.loops.length || data.couplings.length ? "Loops and couplings stay closed: other joints follow." : "";
  at("note").textContent = note;
  at("joints").hidden = !sliders.length;
  at("reset").addEventListener("click", () => { stop(); go(0); at("note").textContent = note; });

  // ---- what to show
  const off = new Set(["centres of mass", "inertias"]);
  for (const [name, objects] of Object.entries(layers)) {
    if (!objects.length || name === "bodies") continue;
    const label = document.createElement("label"), box = document.createElement("input");
    box.type = "checkbox";
    box.checked = !off.has(name);
    const apply = () => { objects.forEach((object) => { object.visible = box.checked; }); place(); };
    box.addEventListener("change", apply);
    label.append(box, ` ${name}`);
    at("choices").append(label);
    objects.forEach((object) => { object.visible = box.checked; });
  }

  // ---- time
  const last = data.q.length - 1;
  at("time").hidden = last < 1;
  at("moment").max = last;
  function go(k) {
    moment = k;
    q = data.q[k].slice();
    at("moment").value = k;
    at("clock").textContent = data.curves ? `${data.times[k].toFixed(2)} s` : `${k + 1} / ${last + 1}`;
    place();
    plot();
  }
  function stop() {
    if (playing) cancelAnimationFrame(playing);
    playing = null;
    at("play").textContent = "▶";
    at("play").setAttribute("aria-label", "Play");
  }
  function play() {
    if (playing) return stop();
    const from = moment >= last ? 0 : moment, pace = data.curves ? 1 : 5, begun = performance.now();
    at("play").textContent = "❚❚";
    at("play").setAttribute("aria-label", "Pause");
    const tick = (now) => {
      const time = data.times[from] + (now - begun) / 1000 * pace;
      let k = moment >= last ? from : Math.max(moment, from);
      while (k < last && data.times[k + 1] <= time) k++;
      go(k);
      if (k >= last) return stop();
      playing = requestAnimationFrame(tick);
    };
    playing = requestAnimationFrame(tick);
    return undefined;
  }
  at("play").addEventListener("click", play);
  at("moment").addEventListener("input", () => { stop(); go(+at("moment").value); });
  document.addEventListener("keydown", (event) => {
    if (event.key === " " && last && event.target.tagName !== "BUTTON") { event.preventDefault(); play(); }
  });

  // ---- curves
  const TONES = ["#2b6cb0", "#d9822b", "#2a9d8f", "#c2185b", "#6b4fbb", "#7a8b00", "#8d5524", "#444"];
  at("plot").hidden = !data.curves;
  if (data.curves) {
    at("plot").querySelector("h2").textContent = data.curves.title;
    data.curves.names.forEach((name, k) => {
      const entry = document.createElement("span"), mark = document.createElement("i");
      mark.style.background = TONES[k % TONES.length];
      entry.append(mark, name);
      at("legend").append(entry);
    });
  }
  function plot() {
    if (!data.curves) return;
    const canvas = at("curves"), ratio = window.devicePixelRatio, wide = canvas.clientWidth, high = canvas.clientHeight;
    canvas.width = wide * ratio;
    canvas.height = high * ratio;
    const pen = canvas.getContext("2d"), values = data.curves.values;
    pen.scale(ratio, ratio);
    pen.font = "11px system-ui, sans-serif";
    let low = 0, most = 0;
    for (const row of values) for (const x of row) { low = Math.min(low, x ?? 0); most = Math.max(most, x ?? 0); }
    if (most - low === 0) most = 1;
    const left = 44, x = (k) => left + (wide - left - 6) * k / Math.max(last, 1), y = (v) => 8 + (high - 24) * (most - v) / (most - low);
    pen.fillStyle = pen.strokeStyle = "#667";
    pen.lineWidth = 1;
    for (const v of new Set([low, 0, most])) {
      pen.globalAlpha = 0.35;
      pen.beginPath(); pen.moveTo(left, y(v)); pen.lineTo(wide - 6, y(v)); pen.stroke();
      pen.globalAlpha = 1;
      pen.textAlign = "right";
      pen.fillText(String(+v.toPrecision(3)), left - 5, y(v) + 4);
    }
    pen.textAlign = "left"; pen.fillText("0 s", left, high - 3);
    pen.textAlign = "right"; pen.fillText(`${+data.times[last].toPrecision(3)} s`, wide - 6, high - 3);
    data.curves.names.forEach((_, j) => {
      pen.strokeStyle = TONES[j % TONES.length];
      pen.lineWidth = 1.6;
      pen.beginPath();
      values.forEach((row, k) => pen.lineTo(x(k), y(row[j] ?? 0)));
      pen.stroke();
    });
    pen.strokeStyle = "#1f2933";
    pen.lineWidth = 1;
    pen.beginPath(); pen.moveTo(x(moment), 6); pen.lineTo(x(moment), high - 14); pen.stroke();
  }

  // ---- names
  const pointer = new THREE.Vector2(), ray = new THREE.Raycaster();
  at("scene").addEventListener("pointermove", (event) => {
    const box = at("scene").getBoundingClientRect();
    pointer.set((event.clientX - box.left) / box.width * 2 - 1, 1 - (event.clientY - box.top) / box.height * 2);
    ray.setFromCamera(pointer, camera);
    const seen = (object) => { for (let o = object; o; o = o.parent) if (!o.visible) return false; return true; };
    const hits = ray.intersectObjects(scene.children, true).map((hit) => hit.object).filter((o) => o.userData.name && seen(o));
    const solid = hits.find((o) => !o.material?.transparent) ?? hits[0];
    at("tip").textContent = solid ? solid.userData.name : "";
  });

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
  fit();
  go(0);
})();
