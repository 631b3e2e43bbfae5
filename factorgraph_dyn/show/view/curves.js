"use strict";
// Curves over time beside the scene: values of one quantity, a line a name, and where the time bar is.

const TONES = ["#2b6cb0", "#d9822b", "#2a9d8f", "#c2185b", "#6b4fbb", "#7a8b00", "#8d5524", "#444444"];

const curves = {
  legend(box, names) {
    box.replaceChildren(...names.map((name, k) => {
      const entry = document.createElement("span"), mark = document.createElement("i");
      mark.style.background = TONES[k % TONES.length];
      entry.append(mark, name);
      return entry;
    }));
  },

  draw(canvas, { values, names }, times, moment) {
    const ratio = window.devicePixelRatio, wide = canvas.clientWidth, high = canvas.clientHeight;
    canvas.width = wide * ratio;
    canvas.height = high * ratio;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = "11px system-ui, sans-serif";
    let low = 0, most = 0;
    for (const row of values) for (const x of row) { low = Math.min(low, x ?? 0); most = Math.max(most, x ?? 0); }
    if (most - low === 0) most = 1;
    const left = 52, first = times[0], span = times[times.length - 1] - first || 1;
    const x = (k) => left + (wide - left - 6) * (times[k] - first) / span;
    const y = (v) => 8 + (high - 26) * (most - v) / (most - low);
    pen.fillStyle = pen.strokeStyle = "#667";
    pen.lineWidth = 1;
    const marks = [low, most].filter((v) => Math.abs(y(v) - y(0)) > 12).concat(0);
    for (const v of marks) {
      pen.globalAlpha = 0.35;
      pen.beginPath(); pen.moveTo(left, y(v)); pen.lineTo(wide - 6, y(v)); pen.stroke();
      pen.globalAlpha = 1;
      pen.textAlign = "right";
      pen.fillText(String(+v.toPrecision(3)), left - 5, y(v) + 4);
    }
    pen.textAlign = "left"; pen.fillText(`${+first.toPrecision(3)} s`, left, high - 3);
    pen.textAlign = "right"; pen.fillText(`${+times[times.length - 1].toPrecision(3)} s`, wide - 6, high - 3);
    names.forEach((_, j) => {
      pen.strokeStyle = TONES[j % TONES.length];
      pen.lineWidth = 1.6;
      pen.beginPath();
      values.forEach((row, k) => pen.lineTo(x(k), y(row[j] ?? 0)));
      pen.stroke();
    });
    pen.strokeStyle = "#1f2933";
    pen.lineWidth = 1;
    pen.beginPath(); pen.moveTo(x(moment), 6); pen.lineTo(x(moment), high - 16); pen.stroke();
  },
};
