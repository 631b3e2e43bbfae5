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

  // Ways to move a configuration, one a freedom: turns in rad, shifts in parts of the mechanism's size.
  freedoms(data, held) {
    const found = [];
    for (const joint of data.joints) {
      const quaternion = joint.q + joint.nq - 4;
      joint.screws.forEach((_, k) => {
        const place = joint.q + k, unit = joint.turns[k] ? 1 : data.size;
        if (place !== held) found.push((q, way) => { q[place] += way * unit; });
      });
      if (!joint.screws.length && joint.nq) {
        for (let place = joint.q; place < quaternion; place++) found.push((q, way) => { q[place] += way * data.size; });
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

  // Bring q to where loops and couplings are closed, by Gauss-Newton steps that leave one entry where it is.
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
