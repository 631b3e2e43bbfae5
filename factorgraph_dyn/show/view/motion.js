"use strict";
// Poses as THREE.Matrix4, screws and twists as arrays [omega; v].

const motion = {
  matrix: (rows) => new THREE.Matrix4().set(...rows),

  // exp of a screw times q
  exponential(screw, q) {
    const w = new THREE.Vector3(screw[0], screw[1], screw[2]).multiplyScalar(q);
    const v = new THREE.Vector3(screw[3], screw[4], screw[5]).multiplyScalar(q);
    const angle = w.length();
    if (angle < 1e-12) return new THREE.Matrix4().makeTranslation(v.x, v.y, v.z);
    const axis = w.clone().divideScalar(angle);
    const T = new THREE.Matrix4().makeRotationAxis(axis, angle);
    const along = axis.dot(v) / angle;
    const c = axis.clone().cross(v).divideScalar(angle); // the axis passes through c
    const turned = c.clone().applyMatrix4(T);
    return T.setPosition(c.sub(turned).addScaledVector(axis, along * angle));
  },

  // [omega; v] whose exponential is T
  logarithm(T) {
    const p = new THREE.Vector3().setFromMatrixPosition(T);
    const r = new THREE.Quaternion().setFromRotationMatrix(T);
    if (r.w < 0) r.set(-r.x, -r.y, -r.z, -r.w);
    const half = Math.hypot(r.x, r.y, r.z);
    const angle = 2 * Math.atan2(half, r.w);
    if (half < 1e-12) return [0, 0, 0, p.x, p.y, p.z];
    const w = new THREE.Vector3(r.x, r.y, r.z).multiplyScalar(angle / half);
    const cross = w.clone().cross(p);
    const rest = (1 - angle / 2 / Math.tan(angle / 2)) / (angle * angle);
    const v = p.clone().addScaledVector(cross, -0.5).addScaledVector(w.clone().cross(cross), rest);
    return [w.x, w.y, w.z, v.x, v.y, v.z];
  },

  jointPose(joint, q) {
    const T = motion.matrix(joint.T);
    const own = q.slice(joint.q, joint.q + joint.nq);
    if (joint.screws.length) joint.screws.forEach((screw, k) => T.multiply(motion.exponential(screw, own[k])));
    else if (joint.nq) {
      const at = own.slice(0, joint.nq - 4), [x, y, z, w] = own.slice(joint.nq - 4);
      const place = new THREE.Matrix4().makeRotationFromQuaternion(new THREE.Quaternion(x, y, z, w).normalize());
      T.multiply(place.setPosition(...(at.length ? at : [0, 0, 0])));
    }
    return T;
  },

  // the pose of every link in the world
  linkPoses(data, q) {
    const poses = data.links.map(() => new THREE.Matrix4());
    for (const joint of data.joints) poses[joint.child].multiplyMatrices(poses[joint.parent], motion.jointPose(joint, q));
    return poses;
  },

  // what loops and couplings miss, lengths in parts of the mechanism's size
  misfit(data, q) {
    const missed = data.couplings.map((c) => q[c.joint] - c.ratio * q[c.source] - c.offset);
    if (!data.loops.length) return missed;
    const poses = motion.linkPoses(data, q);
    for (const loop of data.loops) {
      const T = poses[loop.predecessor].clone().multiply(motion.matrix(loop.T_predecessor)).invert();
      T.multiply(poses[loop.successor]).multiply(motion.matrix(loop.T_successor));
      const p = new THREE.Vector3().setFromMatrixPosition(T).divideScalar(data.size);
      T.setPosition(p);
      if (loop.directions) {
        const twist = motion.logarithm(T);
        for (const direction of loop.directions) missed.push(direction.reduce((sum, x, k) => sum + x * twist[k], 0));
      } else {
        const [first, second] = loop.axes.map((axis) => new THREE.Vector3(...axis));
        const kept = first.dot(second);
        missed.push(p.x, p.y, p.z, first.dot(second.clone().transformDirection(T)) - kept);
      }
    }
    return missed;
  },

  // What can be moved by hand, with what it shows: turns in rad, shifts in m. A ball turns by a rotation vector.
  handles(joint) {
    const coordinate = (k, turns, name) => ({
      places: [joint.q + k], turns, name, get: (q) => q[joint.q + k], set: (q, x) => { q[joint.q + k] = x; },
    });
    if (joint.screws.length) {
      return joint.screws.map((_, k) => coordinate(k, joint.turns[k], joint.nq > 1 ? `${joint.name} ${k + 1}` : joint.name));
    }
    if (!joint.nq) return [];
    const from = joint.q + joint.nq - 4;
    const shifts = ["x", "y", "z"].slice(0, joint.nq - 4).map((axis, k) => coordinate(k, false, `${joint.name} ${axis}`));
    const vector = (q) => motion.logarithm(new THREE.Matrix4().makeRotationFromQuaternion(
      new THREE.Quaternion(...q.slice(from, from + 4)).normalize())).slice(0, 3);
    return shifts.concat(["x", "y", "z"].map((axis, k) => ({
      places: [from, from + 1, from + 2, from + 3], turns: true, name: `${joint.name} turned about ${axis}`,
      get: (q) => vector(q)[k],
      set: (q, x) => {
        const turn = vector(q);
        turn[k] = x;
        const T = motion.exponential([...turn, 0, 0, 0], 1);
        new THREE.Quaternion().setFromRotationMatrix(T).toArray().forEach((value, i) => { q[from + i] = value; });
      },
    })));
  },

  // Move a handle to x in small steps, closing loops after each; stops where they cannot be. Whether it got there.
  // Other motors stay where they are, unless loops ask for more.
  slide(data, q, handle, x) {
    const start = handle.get(q), unit = handle.turns ? 1 : data.size;
    const motors = data.joints.filter((joint) => joint.actuated).flatMap((joint) => [...Array(joint.nq).keys()].map((k) => joint.q + k));
    const holds = handle.places.every((place) => motors.includes(place)) ? [motors, handle.places] : [handle.places];
    const steps = data.loops.length ? Math.max(1, Math.min(60, Math.ceil(Math.abs(x - start) / unit / 0.1))) : 1;
    for (let k = 1; k <= steps; k++) {
      const next = holds.map((held) => {
        const tried = q.slice();
        handle.set(tried, start + (x - start) * k / steps);
        return () => (motion.close(data, tried, held) ? tried : null);
      }).reduce((found, attempt) => found ?? attempt(), null);
      if (!next) return false;
      next.forEach((value, i) => { q[i] = value; });
    }
    return true;
  },

  // Ways to move a configuration, one a freedom: turns in rad, shifts in parts of the mechanism's size.
  freedoms(data, held) {
    const found = [];
    for (const joint of data.joints) {
      const quaternion = joint.q + joint.nq - 4;
      joint.screws.forEach((_, k) => {
        const place = joint.q + k, unit = joint.turns[k] ? 1 : data.size;
        if (!held.includes(place)) found.push((q, way) => { q[place] += way * unit; });
      });
      if (!joint.screws.length && joint.nq) {
        for (let place = joint.q; place < quaternion; place++) {
          if (!held.includes(place)) found.push((q, way) => { q[place] += way * data.size; });
        }
        if (held.includes(quaternion)) continue;
        for (const axis of [[1, 0, 0], [0, 1, 0], [0, 0, 1]]) {
          found.push((q, way) => {
            const turn = new THREE.Quaternion().setFromAxisAngle(new THREE.Vector3(...axis), way);
            const now = new THREE.Quaternion(...q.slice(quaternion, quaternion + 4)).multiply(turn).normalize();
            [q[quaternion], q[quaternion + 1], q[quaternion + 2], q[quaternion + 3]] = now.toArray();
          });
        }
      }
    }
    return found;
  },

  // Bring q to where loops and couplings are closed, by Gauss-Newton steps that leave some entries where they are.
  close(data, q, held) {
    if (!data.loops.length && !data.couplings.length) return true;
    const free = motion.freedoms(data, held);
    let missed = motion.misfit(data, q), error = Math.hypot(...missed);
    for (let round = 0; round < 25 && error > 1e-9; round++) {
      const J = free.map((move) => {
        const moved = q.slice(), step = 1e-6;
        move(moved, step);
        return motion.misfit(data, moved).map((x, i) => (x - missed[i]) / step);
      });
      const step = solve(J, missed);
      let scale = Math.min(1, 0.3 / Math.max(...step.map(Math.abs), 1e-12)), next, found;
      for (let halving = 0; ; halving++, scale /= 2) {
        next = q.slice();
        free.forEach((move, k) => move(next, -scale * step[k]));
        found = Math.hypot(...motion.misfit(data, next));
        if (found < error || halving > 6) break;
      }
      if (!(found < error)) break;
      next.forEach((x, k) => { q[k] = x; });
      missed = motion.misfit(data, q);
      error = Math.hypot(...missed);
    }
    return error < 1e-6;

    // the least x with J^T x = e, damped: (J J^T + d) y = e; J is given by columns
    function solve(columns, e) {
      const n = e.length;
      const A = e.map((_, i) => e.map((__, j) => columns.reduce((sum, c) => sum + c[i] * c[j], i === j ? 1e-10 : 0)));
      const y = e.slice();
      for (let i = 0; i < n; i++) {
        for (let j = i + 1; j < n; j++) {
          const factor = A[j][i] / A[i][i];
          for (let k = i; k < n; k++) A[j][k] -= factor * A[i][k];
          y[j] -= factor * y[i];
        }
      }
      for (let i = n - 1; i >= 0; i--) {
        for (let k = i + 1; k < n; k++) y[i] -= A[i][k] * y[k];
        y[i] /= A[i][i];
      }
      return columns.map((c) => c.reduce((sum, x, i) => sum + x * y[i], 0));
    }
  },
};
