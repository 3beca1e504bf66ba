// Lines on a canvas: [{ points: [[x, y], …], colour, dash, wide, pale }], on an axis from 0 to `end`; a point without a
// value breaks its line. Marks are { at, text, shaded }: where phases begin. The cursor is a place on the axis.
const PAD = { left: 54, right: 8, top: 18, bottom: 8 };

function drawLines(canvas, lines, { end = 1, marks = [], digits = 0, zero = true, cursor = null } = {}) {
  const c = canvas.getContext("2d"), ratio = Math.min(devicePixelRatio || 1, 2), width = canvas.clientWidth, height = canvas.clientHeight;
  if (!width) return;
  [canvas.width, canvas.height] = [width * ratio, height * ratio];
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  const values = lines.flatMap(({ points }) => points.map(([, y]) => y)).filter(isNumber);
  let low = values.reduce((a, b) => Math.min(a, b), zero ? 0 : Infinity), high = values.reduce((a, b) => Math.max(a, b), zero ? 0 : -Infinity);
  if (!(high - low >= 1e-9)) [low, high] = [Number.isFinite(low) ? low : 0, (Number.isFinite(low) ? low : 0) + 1];
  const X = (x) => PAD.left + (x / end) * (width - PAD.left - PAD.right), Y = (y) => height - PAD.bottom - ((y - low) / (high - low)) * (height - PAD.top - PAD.bottom);
  const upright = (x, from) => { c.beginPath(); c.moveTo(X(x), from); c.lineTo(X(x), height); c.stroke(); };
  c.font = "12px system-ui, sans-serif";
  c.textAlign = "left";
  marks.forEach(({ at, text, shaded }, i) => {
    const next = marks[i + 1]?.at ?? end;
    c.fillStyle = resolved("--ground");
    c.globalAlpha = 0.5;
    if (shaded) c.fillRect(X(at), 0, X(next) - X(at), height);
    c.globalAlpha = 1;
    c.strokeStyle = resolved("--line");
    if (!shaded) upright(at, 0);
    c.fillStyle = resolved("--muted");
    if (text) c.fillText(text, X(at) + 5, 12, Math.max(X(next) - X(at) - 8, 1));
  });
  c.textAlign = "right";
  c.fillStyle = resolved("--muted");
  if (values.length) for (const value of [low, high]) c.fillText(format(value, digits), PAD.left - 6, Y(value) + (value === high ? 5 : 0));
  for (const { points, colour, dash = [], wide = false, pale = false } of lines) {
    c.strokeStyle = resolved(colour);
    c.globalAlpha = pale ? 0.75 : 1;
    c.lineWidth = wide ? 3 : pale ? 1.5 : 2;
    c.setLineDash(dash);
    c.beginPath();
    let pen = false;
    for (const [x, y] of points) {
      if (isNumber(y)) c[pen ? "lineTo" : "moveTo"](X(x), Y(y));
      pen = isNumber(y);
    }
    c.stroke();
  }
  c.setLineDash([]);
  c.globalAlpha = 1;
  c.strokeStyle = resolved("--ink");
  c.lineWidth = 1;
  if (cursor !== null) upright(cursor, PAD.top);
}

// Which place on the axis a pointer means.
const axisAt = (canvas, event, end) => ((event.offsetX - PAD.left) / (canvas.clientWidth - PAD.left - PAD.right)) * end;
