// The plane of θ: its pictures are drawn already (plane.py); this reads values off them, by pointer or arrow keys.
const NEAR = 9;  // units of the picture within which a path's point is meant, and not the landscape under it

class PlaneReader {
  constructor(figure, plane, index, task) {
    Object.assign(this, { plane, index, task, at: -1, root: $("svg", figure), stops: plane.stops.flat() });
    this.tip = make("div", { class: "tip", hidden: true, "aria-live": "polite" });
    this.mark = svg("circle", { class: "mark", r: 7, visibility: "hidden" });
    this.root.append(this.mark);
    this.root.after(this.tip);
    this.root.addEventListener("pointermove", (event) => this.read(event));
    for (const end of ["pointerleave", "blur"]) this.root.addEventListener(end, () => this.hide());
    this.root.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      this.stop(clamp(this.at + step, 0, this.stops.length - 1));
    });
  }

  read(event) {
    const box = this.root.getBoundingClientRect(), scale = this.plane.width / box.width;
    const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
    const distances = this.stops.map((stop) => Math.hypot(stop.x - x, stop.y - y)), least = Math.min(...distances);
    if (least < NEAR) this.stop(distances.indexOf(least));
    else this.ground(nearestOf(this.plane.columns, x), nearestOf(this.plane.rows, y));
  }

  stop(at) {
    const { x, y, words, off, values } = this.stops[(this.at = at)];
    this.show(x, y, words, [`R\u0302 on ${this.task} ${format(values[this.index])}`, `${format(off)} off the plane`]);
  }

  ground(column, row) {
    const value = this.plane.values[this.index][row][column];
    this.show(this.plane.columns[column], this.plane.rows[row], "measured here", [`R\u0302 on ${this.task} ${format(value)}`]);
  }

  show(x, y, title, lines) {
    const box = this.root.getBoundingClientRect(), scale = box.width / this.plane.width;
    this.mark.setAttribute("cx", x);
    this.mark.setAttribute("cy", y);
    this.mark.setAttribute("visibility", "visible");
    this.tip.replaceChildren(make("b", {}, title), ...lines.map((line) => make("p", {}, line)));
    this.tip.hidden = false;
    const right = x * scale > box.width / 2;
    this.tip.style.left = right ? "auto" : `${x * scale + 12}px`;
    this.tip.style.right = right ? `${box.width - x * scale + 12}px` : "auto";
    this.tip.style.top = `${clamp(y * scale - 20, 0, box.height - 70)}px`;
  }

  hide() {
    this.tip.hidden = true;
    this.mark.setAttribute("visibility", "hidden");
  }
}

function nearestOf(places, wanted) {
  return places.reduce((best, place, i) => (Math.abs(place - wanted) < Math.abs(places[best] - wanted) ? i : best), 0);
}

function startPlane(plane) {
  if (!plane?.columns) return;
  $$("#plane-panels figure").forEach((figure, i) => new PlaneReader($(".chart-box", figure), plane, i, figure.dataset.task));
}
