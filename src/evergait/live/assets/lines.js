// Lines on a canvas: [{ points: [[x, y], …], colour, wide }], on an axis from 0 to `end`, with marks where phases begin.
function drawLines(canvas, lines, { end = 1, marks = [], digits = 0, zero = true } = {}) {
  const c = canvas.getContext("2d"), ratio = Math.min(devicePixelRatio || 1, 2), width = canvas.clientWidth, height = canvas.clientHeight;
  if (!width) return;
  [canvas.width, canvas.height] = [width * ratio, height * ratio];
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  const values = lines.flatMap(({ points }) => points.map(([, y]) => y)).filter(isNumber), pad = { left: 54, right: 8, top: 14, bottom: 8 };
  if (!values.length) return;
  let low = values.reduce((a, b) => Math.min(a, b)), high = values.reduce((a, b) => Math.max(a, b));
  if (zero) [low, high] = [Math.min(low, 0), Math.max(high, 0)];
  if (high - low < 1e-9) high = low + 1;
  const X = (x) => pad.left + (x / end) * (width - pad.left - pad.right), Y = (y) => height - pad.bottom - ((y - low) / (high - low)) * (height - pad.top - pad.bottom);
  c.font = "12px system-ui, sans-serif";
  c.fillStyle = resolved("--muted");
  c.strokeStyle = resolved("--line");
  for (const { at, text } of marks) {
    c.beginPath(); c.moveTo(X(at), 0); c.lineTo(X(at), height); c.stroke();
    c.textAlign = "left";
    if (text) c.fillText(text, X(at) + 4, 11);
  }
  c.textAlign = "right";
  c.fillText(format(high, digits), pad.left - 6, pad.top + 6);
  c.fillText(format(low, digits), pad.left - 6, height - pad.bottom);
  for (const { points, colour, wide } of lines) {
    c.strokeStyle = resolved(colour);
    c.globalAlpha = wide ? 1 : 0.75;
    c.lineWidth = wide ? 3 : 1.5;
    c.beginPath();
    let pen = false;
    for (const [x, y] of points) {
      if (isNumber(y)) c[pen ? "lineTo" : "moveTo"](X(x), Y(y));
      pen = isNumber(y);
    }
    c.stroke();
  }
  c.globalAlpha = 1;
}
