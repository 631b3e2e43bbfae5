"use strict";
// What is seen of links, joints, loops, frames and wrenches.

const COLOURS = { link: 0x8fa3b8, base: 0x5d6b78, axis: 0xd9822b, passive: 0x7f8c8d, loop: 0xc2185b, com: 0x222222,
  inertia: 0x2a9d8f, frame: 0x3b6fb6, force: 0xd62828, moment: 0x7b2cbf };

const bodies = {
  material: (colour, opacity = 1) => new THREE.MeshStandardMaterial({
    color: colour, roughness: 0.65, metalness: 0.05, transparent: opacity < 1, opacity, depthWrite: opacity === 1,
    side: THREE.DoubleSide,
  }),

  named(object, name) {
    object.traverse((part) => { part.userData.name = name; });
    return object;
  },

  ball(radius, colour, opacity) {
    return new THREE.Mesh(new THREE.SphereGeometry(radius, 24, 16), bodies.material(colour, opacity));
  },

  // a rod from one place to another
  rod(from, to, radius, colour) {
    const way = to.clone().sub(from), length = way.length();
    const mesh = new THREE.Mesh(new THREE.CylinderGeometry(radius, radius, length, 20), bodies.material(colour));
    mesh.quaternion.setFromUnitVectors(new THREE.Vector3(0, 1, 0), way.divideScalar(length || 1));
    mesh.position.copy(from).add(to).multiplyScalar(0.5);
    return mesh;
  },

  along(mesh, axis) {
    mesh.quaternion.setFromUnitVectors(new THREE.Vector3(0, 1, 0), axis);
    return mesh;
  },

  link(link, thick, isBase) {
    const group = new THREE.Group(), origin = new THREE.Vector3(), colour = isBase ? COLOURS.base : COLOURS.link;
    for (const end of link.ends) {
      const place = new THREE.Vector3(...end);
      group.add(bodies.rod(origin, place, thick * 0.55, colour));
      const cap = bodies.ball(thick * 0.55, colour);
      cap.position.copy(place);
      group.add(cap);
    }
    if (link.ends.length || !isBase) group.add(bodies.ball(thick * 0.62, colour));
    return bodies.named(group, bodies.title(link));
  },

  centre(link, thick) {
    const ball = bodies.ball(thick * 0.4, COLOURS.com);
    ball.position.set(...link.com);
    return bodies.named(ball, `centre of mass of ${link.name}`);
  },

  inertia(link) {
    const [a, b, c] = link.ellipsoid.radii, R = link.ellipsoid.R;
    const mesh = bodies.ball(1, COLOURS.inertia, 0.28);
    const turn = new THREE.Matrix4().set(R[0], R[1], R[2], 0, R[3], R[4], R[5], 0, R[6], R[7], R[8], 0, 0, 0, 0, 1);
    mesh.quaternion.setFromRotationMatrix(turn);
    mesh.scale.set(a, b, c);
    mesh.position.set(...link.com);
    return bodies.named(mesh, `inertia of ${link.name}, as a solid ellipsoid`);
  },

  // a joint by its kind, in its own frame
  joint(joint, thick, colour) {
    const group = new THREE.Group(), axes = joint.axes.map((axis) => new THREE.Vector3(...axis));
    const turned = (geometry, axis) => group.add(bodies.along(new THREE.Mesh(geometry, bodies.material(colour)), axis));
    const barrel = (axis, length, radius) => turned(new THREE.CylinderGeometry(radius, radius, length, 28), axis);
    if (["revolute", "continuous", "universal", "helical"].includes(joint.kind)) {
      for (const axis of axes) {
        barrel(axis, thick * 3, thick * 0.85);
        barrel(axis, thick * 7, thick * 0.12);
      }
      if (joint.kind === "helical") {
        for (const at of [-0.9, 0, 0.9]) {
          const ring = new THREE.Mesh(new THREE.TorusGeometry(thick * 1.05, thick * 0.18, 10, 28), bodies.material(colour));
          ring.quaternion.setFromUnitVectors(new THREE.Vector3(0, 0, 1), axes[0]);
          ring.position.copy(axes[0]).multiplyScalar(at * thick);
          group.add(ring);
        }
      }
    } else if (joint.kind === "prismatic") {
      turned(new THREE.BoxGeometry(thick * 1.5, thick * 3.6, thick * 1.5), axes[0]);
      barrel(axes[0], thick * 9, thick * 0.12);
    } else if (joint.kind === "planar") {
      barrel(axes[0], thick * 0.25, thick * 2.2);
      barrel(axes[0], thick * 2, thick * 0.4);
    } else if (joint.kind === "floating") group.add(new THREE.AxesHelper(thick * 4));
    else group.add(bodies.ball(thick * 1.25, colour));
    return group;
  },

  // a mesh of the page: corners in steps of a box, and numbers of corners
  mesh(packed) {
    const numbers = (text) => {
      const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
      return new Uint16Array(bytes.buffer); // little-endian, as every machine with a browser is
    };
    const steps = numbers(packed.corners), corners = new Float32Array(steps.length);
    steps.forEach((step, k) => { corners[k] = packed.low[k % 3] + packed.step[k % 3] * step; });
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", new THREE.BufferAttribute(corners, 3));
    geometry.setIndex(new THREE.BufferAttribute(numbers(packed.triangles), 1));
    return geometry;
  },

  // a shape that a link is drawn as
  visual(visual, geometries, link) {
    const [a, b, c] = visual.size, z = new THREE.Vector3(0, 0, 1), group = new THREE.Group();
    const [red, green, blue, opacity] = visual.colour ?? [0.62, 0.68, 0.74, 1];
    const material = bodies.material(0, opacity);
    material.color.setRGB(red, green, blue, "srgb");
    const add = (geometry) => { const mesh = new THREE.Mesh(geometry, material); group.add(mesh); return mesh; };
    if (visual.shape === "mesh") {
      material.flatShading = true;
      add(geometries[visual.mesh]).scale.set(a, b, c);
    } else if (visual.shape === "box") add(new THREE.BoxGeometry(a, b, c));
    else if (visual.shape === "sphere") add(new THREE.SphereGeometry(a, 28, 20));
    else if (visual.shape === "ellipsoid") add(new THREE.SphereGeometry(1, 28, 20)).scale.set(a, b, c);
    else {
      bodies.along(add(new THREE.CylinderGeometry(a, a, b, 32)), z);
      if (visual.shape === "capsule") {
        for (const at of [-b / 2, b / 2]) add(new THREE.SphereGeometry(a, 28, 20)).position.set(0, 0, at);
      }
    }
    group.applyMatrix4(motion.matrix(visual.T));
    group.userData.material = material;
    return bodies.named(group, bodies.title(link));
  },

  title: (link) => `link ${link.name}` + (link.mass ? `, ${+link.mass.toPrecision(4)} kg` : ""),

  frame(frame, thick) {
    const axes = new THREE.AxesHelper(thick * 4), dot = bodies.ball(thick * 0.35, COLOURS.frame);
    const group = new THREE.Group().add(axes, dot);
    group.applyMatrix4(motion.matrix(frame.T));
    return bodies.named(group, `frame ${frame.name}`);
  },

  arrow(colour, thick) {
    const arrow = new THREE.Group();
    const shaft = new THREE.Mesh(new THREE.CylinderGeometry(thick * 0.25, thick * 0.25, 1, 16), bodies.material(colour));
    const head = new THREE.Mesh(new THREE.CylinderGeometry(0, thick * 0.7, thick * 1.6, 20), bodies.material(colour));
    arrow.add(shaft, head);
    arrow.userData.point = (from, way) => {
      const length = way.length();
      arrow.visible = length > thick * 0.1;
      if (!arrow.visible) return;
      arrow.position.copy(from);
      arrow.quaternion.setFromUnitVectors(new THREE.Vector3(0, 1, 0), way.clone().divideScalar(length));
      shaft.scale.y = length;
      shaft.position.y = length / 2;
      head.position.y = length;
    };
    return arrow;
  },
};
