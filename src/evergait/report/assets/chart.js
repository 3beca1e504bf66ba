// Line charts in inline SVG. Plotly is a dependency of the package, but its only bundle in the wheel is 4.8 MB, a third of
// what a whole report may weigh; these lines, bands, hover, zoom and toggles need no more than this file.
const charts = { list: [], zoom: null, hidden: new Set(), measure: "return", isShare: false };

function niceTicks(low, high, wanted) {
  const raw = (high - low) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw) || raw;
  const ticks = [];
  for (let t = Math.ceil(low / step - 1e-9) * step; t <= high + step * 1e-9; t += step) ticks.push(Math.abs(t) < step / 1e6 ? 0 : t);
  const digits = [0, 1, 2, 3, 4, 5, 6].find((n) => Math.abs(step * 10 ** n - Math.round(step * 10 ** n)) < 1e-6) ?? 6;
  return { ticks, labels: ticks.map((t) => format(t, digits)) };
}

const CAP = 2;  // as in charts.py: one task far beyond R* must not flatten all other lines

// One scale for all panels of a measure: otherwise they cannot be compared. Returns have whatever range they have;
// bands may leave it, for those of three seeds are wide.
function sharedDomain(panels, measure) {
  const shares = charts.isShare && measure !== "return";
  let [low, high] = !shares ? (measure === "return" ? [Infinity, -Infinity] : [0, 0]) : measure === "score" ? [0, 1] : measure === "backward" ? [-0.5, 0.2] : [0, 0.2];
  const cut = (y) => (shares ? clamp(y, -CAP, CAP) : y);
  for (const panel of panels) {
    for (const line of panel.lines[measure].filter((line) => !charts.hidden.has(line.task))) {
      for (const y of line.y) if (isNumber(y)) [low, high] = [Math.min(low, cut(y)), Math.max(high, cut(y))];
    }
  }
  if (!(high > low)) [low, high] = Number.isFinite(low) ? [low - 1, high + 1] : [0, 1];
  const margin = 0.05 * (high - low);
  return [low === 0 ? 0 : low - margin, high + margin];
}

// Pieces of a line between gaps, as SVG path data.
function pathOf(xs, ys, X, Y) {
  let data = "", pen = "M";
  ys.forEach((y, i) => {
    if (!isNumber(y)) { pen = "M"; return; }
    data += `${pen}${X(xs[i]).toFixed(1)} ${Y(y).toFixed(1)}`;
    pen = "L";
  });
  return data;
}

function bandOf(xs, line, X, Y) {
  const shown = xs.map((_, i) => i).filter((i) => isNumber(line.low[i]) && isNumber(line.high[i]));
  if (!shown.length) return "";
  const point = (i, values) => `${X(xs[i]).toFixed(1)} ${Y(values[i]).toFixed(1)}`;
  return `M${shown.map((i) => point(i, line.high)).join("L")}L${shown.reverse().map((i) => point(i, line.low)).join("L")}Z`;
}

class Chart {
  constructor(figure, panel, tasks) {
    Object.assign(this, { figure, panel, tasks, at: null });
    this.root = svg("svg", { class: "chart", tabindex: "0", role: "img", "aria-label": this.describe() });
    this.tip = make("div", { class: "tip", hidden: true, "aria-live": "polite" });
    figure.append(make("div", { class: "chart-box" }, [this.root, this.tip]));
    this.listen();
    new ResizeObserver(() => this.draw()).observe(figure);
  }

  describe() {
    const { condition, order, stages } = this.panel;
    return `${condition}, ${order}: one line per task over ${stages.length} phases. Left and right arrow keys read values.`;
  }

  get domain() {
    const xs = this.panel.x, full = [xs[0], Math.max(xs[xs.length - 1], xs[0] + 1)];
    if (!charts.zoom) return full;
    const [a, b] = [Math.max(charts.zoom[0], full[0]), Math.min(charts.zoom[1], full[1])];
    return b > a ? [a, b] : full;
  }

  draw() {
    const width = this.figure.clientWidth, height = width > 620 ? 340 : 190;
    if (!width) return;
    const ys = niceTicks(...charts.domain, height > 200 ? 7 : 4), widest = Math.max(...ys.labels.map((text) => text.length));
    const margin = { left: 12 + 6.5 * Math.max(widest, 3), right: 8, top: 20, bottom: 24 };
    const [x0, x1] = this.domain, [y0, y1] = charts.domain;
    const X = (x) => margin.left + ((x - x0) / (x1 - x0)) * (width - margin.left - margin.right);
    const Y = (y) => height - margin.bottom - ((y - y0) / (y1 - y0)) * (height - margin.top - margin.bottom);
    Object.assign(this, { X, Y, ys, width, height, margin });
    this.root.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.root.setAttribute("height", height);
    const clip = `clip-${charts.list.indexOf(this)}`;
    const inner = { x: margin.left, y: margin.top - 4, width: width - margin.left - margin.right, height: height - margin.top - margin.bottom + 8 };
    this.root.replaceChildren(
      svg("clipPath", { id: clip }, svg("rect", inner)),
      ...this.axes(),
      svg("g", { "clip-path": `url(#${clip})` }, [...this.switches(), ...this.lines()]),
      ...this.labels(),
      (this.cursor = svg("g", { class: "cursor" })),
      (this.brush = svg("rect", { class: "brush", y: margin.top, height: height - margin.top - margin.bottom, width: 0 })),
    );
    this.point(this.at);
  }

  axes() {
    const { X, Y, ys, width, height, margin } = this, parts = [];
    const xs = niceTicks(...this.domain, Math.max(2, width / 90));
    ys.ticks.forEach((y, i) => {
      parts.push(svg("path", { class: y === 0 ? "zero" : "grid", d: `M${margin.left} ${Y(y)}H${width - margin.right}` }));
      parts.push(svg("text", { class: "tick", x: margin.left - 6, y: Y(y) + 4, "text-anchor": "end" }, ys.labels[i]));
    });
    let free = -Infinity;  // a label that would touch the one before it is left out
    xs.ticks.forEach((x, i) => {
      const half = 3.3 * xs.labels[i].length, at = Math.min(X(x), width - 2 - half);
      if (at - half < free) return;
      parts.push(svg("text", { class: "tick", x: at, y: height - 7, "text-anchor": "middle" }, xs.labels[i]));
      free = at + half + 6;
    });
    return parts;
  }

  switches() {
    const { X, height, margin } = this;
    return this.panel.stages.slice(1).map((stage) =>
      svg("path", { class: "switch", d: `M${X(stage.from)} ${margin.top - 4}V${height - margin.bottom}` }));
  }

  // Which task is being learnt, above its stretch of the axis.
  labels() {
    const { X, width, margin } = this;
    return this.panel.stages.flatMap((stage) => {
      const from = clamp(X(stage.from), margin.left, width - margin.right), to = clamp(X(stage.to), margin.left, width - margin.right);
      if (to - from < 8) return [];
      const fits = Math.floor((to - from) / 6.2);
      const text = stage.label.length > fits ? stage.label.slice(0, Math.max(1, fits - 1)) : stage.label;
      return [
        ...stage.tasks.map((task, i) => {
          const share = (to - from - 4) / stage.tasks.length;
          return svg("path", { d: `M${from + 2 + i * share} 15h${share}`, stroke: colourOf(task), "stroke-width": 2 });
        }),
        svg("text", { class: "stage", x: (from + to) / 2, y: 10, "text-anchor": "middle" }, [svg("title", {}, stage.label), text]),
      ];
    });
  }

  lines() {
    const { X, Y } = this, xs = this.panel.x;
    return this.panel.lines[charts.measure].filter((line) => !charts.hidden.has(line.task)).flatMap((line) => [
      line.low ? svg("path", { class: "band", d: bandOf(xs, line, X, Y), fill: colourOf(line.task) }) : "",
      svg("path", { class: "line", d: pathOf(xs, line.y, X, Y), stroke: colourOf(line.task), "stroke-dasharray": dashOf(line.task) }),
    ]);
  }

  // The crosshair at an evaluation, with every visible task's value.
  point(index) {
    this.at = index;
    this.cursor?.replaceChildren();
    this.tip.hidden = index === null;
    if (index === null || !this.cursor) return;
    const { X, Y, margin, height, width } = this, x = this.panel.x[index];
    const lines = this.panel.lines[charts.measure].filter((line) => !charts.hidden.has(line.task) && isNumber(line.y[index]));
    this.cursor.append(svg("path", { d: `M${X(x)} ${margin.top}V${height - margin.bottom}` }));
    lines.forEach((line) => this.cursor.append(svg("circle", { cx: X(x), cy: Y(line.y[index]), r: 3.5, fill: colourOf(line.task) })));
    const rows = lines.map((line) => {
      const spread = line.low && isNumber(line.low[index]) ? ` (${short(line.low[index])} to ${short(line.high[index])})` : "";
      const plain = charts.measure === "score" ? this.panel.lines.return.find((other) => other.task === line.task) : null;
      const beside = plain && isNumber(plain.y[index]) ? `, return ${short(plain.y[index])}` : "";
      return make("div", { style: `--c: ${colourOf(line.task)}` }, `${this.tasks[line.task]} ${short(line.y[index])}${spread}${beside}`);
    });
    this.tip.replaceChildren(make("b", {}, this.panel.unit === "generation" ? `generation ${x}` : `${x} ${this.panel.unit}`), ...rows);
    const right = X(x) > width / 2;
    this.tip.style.left = right ? "auto" : `${X(x) + 10}px`;
    this.tip.style.right = right ? `${width - X(x) + 10}px` : "auto";
  }

  nearest(clientX) {
    const box = this.root.getBoundingClientRect(), [x0, x1] = this.domain;
    const x = x0 + ((clientX - box.left - this.margin.left) / (this.width - this.margin.left - this.margin.right)) * (x1 - x0);
    let best = 0;
    this.panel.x.forEach((value, i) => { if (Math.abs(value - x) < Math.abs(this.panel.x[best] - x)) best = i; });
    return { x: clamp(x, x0, x1), index: best };
  }

  listen() {
    let start = null;
    this.root.addEventListener("pointermove", (event) => {
      const { x, index } = this.nearest(event.clientX);
      this.point(index);
      if (start === null) return;
      const [a, b] = [Math.min(start, x), Math.max(start, x)];
      this.brush.setAttribute("x", this.X(a));
      this.brush.setAttribute("width", this.X(b) - this.X(a));
    });
    this.root.addEventListener("pointerdown", (event) => { if (event.pointerType === "mouse") start = this.nearest(event.clientX).x; });
    addEventListener("pointerup", (event) => {
      if (start === null) return;
      const end = this.nearest(event.clientX).x, [a, b] = [Math.min(start, end), Math.max(start, end)];
      start = null;
      this.brush.setAttribute("width", 0);
      if (this.X(b) - this.X(a) > 8) setZoom([a, b]);
    });
    this.root.addEventListener("pointerleave", () => this.point(null));
    this.root.addEventListener("blur", () => this.point(null));
    this.root.addEventListener("dblclick", () => setZoom(null));
    this.root.addEventListener("keydown", (event) => {
      const last = this.panel.x.length - 1, from = this.at === null ? last : this.at;
      const to = { ArrowLeft: from - 1, ArrowRight: from + 1, Home: 0, End: last }[event.key];
      if (event.key === "Escape") return setZoom(null);
      if (to === undefined) return;
      event.preventDefault();
      this.point(clamp(to, 0, last));
    });
  }
}

// All panels zoom together, so that the same moments are compared.
function setZoom(range) {
  charts.zoom = range;
  const reset = $("#reset-zoom");
  if (reset) reset.hidden = !range;
  charts.list.forEach((chart) => chart.draw());
}

function startCharts(data) {
  const host = $("#curves-panels");
  if (!host) return;
  charts.isShare = data.isShare;
  charts.measure = data.isShare ? "score" : "return";
  const redraw = () => { charts.domain = sharedDomain(data.panels, charts.measure); charts.list.forEach((chart) => chart.draw()); };
  charts.domain = sharedDomain(data.panels, charts.measure);
  $$("figure", host).forEach((figure) => charts.list.push(new Chart(figure, data.panels[Number(figure.dataset.panel)], data.tasks)));
  startFilter();
  charts.list.forEach((chart) => chart.draw());
  $$("#curves-legend button").forEach((button) => button.addEventListener("click", () => {
    const task = Number(button.dataset.task), shown = charts.hidden.has(task);
    charts.hidden[shown ? "delete" : "add"](task);
    button.setAttribute("aria-pressed", String(shown));
    redraw();
  }));
  $$("input[name=measure]").forEach((input) => input.addEventListener("change", () => {
    charts.measure = input.value;
    $$("[data-explains]").forEach((note) => { note.hidden = note.dataset.explains !== input.value; });
    redraw();
  }));
  $("#reset-zoom").addEventListener("click", () => setZoom(null));
}

// Conditions and the order that are shown, everywhere on the page at once.
function startFilter() {
  const buttons = $$("#filter-conditions button"), order = $("#curves-order");
  const apply = () => {
    const hidden = new Set(buttons.filter((b) => b.getAttribute("aria-pressed") === "false").map((b) => b.dataset.condition));
    $$("[data-condition]:not(button)").forEach((node) => {
      const other = node.dataset.order !== undefined && order && order.value !== "" && node.dataset.order !== order.value;
      node.hidden = hidden.has(node.dataset.condition) || (other && node.dataset.order.includes(" > "));
    });
  };
  const press = (list, shown) => { list.forEach((button) => button.setAttribute("aria-pressed", String(shown))); apply(); };
  buttons.forEach((button) => button.addEventListener("click", () => press([button], button.getAttribute("aria-pressed") === "false")));
  $("#filter-all")?.addEventListener("click", () => press(buttons, true));
  $("#filter-none")?.addEventListener("click", () => press(buttons, false));
  order?.addEventListener("change", apply);
  apply();
}
