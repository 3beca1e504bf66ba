// Returns over the stream's time, one curve per side; a phase is one unit of time, whatever its length.
class Returns {
  constructor(canvas) {
    this.canvas = canvas;
    this.pad = { left: 46, right: 10, top: 18, bottom: 6 };
  }

  // sides: [{ run, colour, dash }]
  draw(sides, task, time, end) {
    const { canvas, pad } = this, c = canvas.getContext("2d"), ratio = Math.min(devicePixelRatio || 1, 2);
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width) return;
    [canvas.width, canvas.height] = [width * ratio, height * ratio];
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    const values = sides.flatMap(({ run }) => run.curves.flatMap((curve) => curve.returns[task] ?? [])).filter(isNumber);
    const low = Math.min(0, ...values), high = Math.max(1, ...values);
    const X = (t) => pad.left + (t / end) * (width - pad.left - pad.right), Y = (v) => height - pad.bottom - ((v - low) / (high - low)) * (height - pad.top - pad.bottom);
    this.phases(c, sides[0].run, X, height, width, end);
    c.fillStyle = resolved("--muted");
    c.textAlign = "right";
    c.fillText(format(high, 0), pad.left - 6, pad.top + 8);
    c.fillText(format(low, 0), pad.left - 6, height - pad.bottom);
    for (const { run, colour, dash } of sides) {
      c.strokeStyle = resolved(colour);
      c.setLineDash(dash);
      c.lineWidth = 2;
      c.beginPath();
      for (const curve of run.curves) (curve.returns[task] ?? []).forEach((value, i) => { if (isNumber(value)) c[i ? "lineTo" : "moveTo"](X(curve.times[i]), Y(value)); });
      c.stroke();
    }
    c.setLineDash([]);
    c.strokeStyle = resolved("--ink");
    c.lineWidth = 1;
    c.beginPath(); c.moveTo(X(time), pad.top); c.lineTo(X(time), height); c.stroke();
  }

  phases(c, run, X, height, width, end) {
    c.font = "12px system-ui, sans-serif";
    c.textAlign = "left";
    run.stream.forEach((name, stage) => {
      if (stage % 2) {
        c.fillStyle = resolved("--ground");
        c.globalAlpha = 0.5;
        c.fillRect(X(stage), 0, X(stage + 1) - X(stage), height);
        c.globalAlpha = 1;
      }
      c.fillStyle = resolved("--muted");
      c.fillText(`learns ${name.replaceAll("-v5", "")}`, X(stage) + 6, 12, (width * 0.9) / end);
    });
  }
}
