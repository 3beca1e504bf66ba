// A robot that lives on a canvas: stepped in real time, drawn from its links, held by a pointer or pushed by a key.
class LiveStage extends Stage {
  constructor(canvas, engine, colour) {
    super(canvas);
    Object.assign(this, { engine, colour, live: null, now: null, at: 0, behind: 0, trace: [], fallen: 0, number: 0, world: {}, held: null, shove: null });
    this.listen();
  }

  // Another task: a new body. Another policy of the same task: the body stays, and what moves it changes under way.
  task(robot, network, theta) {
    this.live?.close();
    this.robotData = robot;
    this.network = network;
    const n = Number(network.layers[2]), unit = { mean: new Float64Array(n), scale: new Float64Array(n).fill(1) };
    this.live = new LiveRobot(this.engine, robot, { ...network, ...unit }, theta);
    this.live.world(this.world);
    this.policy(network, theta);
    this.reset();
  }

  policy(network, theta) {
    this.live.policy(theta);
    this.live.normalise(network.mean, network.scale);
  }

  change(world) {
    this.world = world;
    this.live?.world(world);
  }

  reset() {
    const { robotData: robot } = this, seed = 1000 + this.number++;
    const start = robot.trainable ? this.engine.resets(robot, new Uint32Array([seed])) : robot.resets[this.number % robot.resets.length];
    this.now = this.live.reset(start, seed);
    Object.assign(this, { behind: 0, moved: 0, pace: 0, trace: [], fallen: 0, start: this.now.position[0], shove: null });
    this.at = this.middle()[0];
  }

  // Advance by so many seconds of the robot's own time; returns how many environment steps that took.
  advance(seconds) {
    const { seconds: dt, limit } = this.robotData;
    this.behind = Math.min(this.behind + seconds, 0.1 + dt);
    let steps = 0;
    while (this.behind >= dt) {
      this.behind -= dt;
      this.live.hand(this.grip(dt));
      this.now = this.live.step(1);
      steps++;
      this.moved += dt;
      if (!this.now.finite) { this.reset(); break; }
      this.trace.push(this.middle());
      if (this.trace.length > 3 / dt) this.trace.shift();
      this.fallen = this.now.healthy ? 0 : this.fallen + dt;
      if ((this.fallen > 1.6 && !this.held) || this.now.steps >= limit) { this.reset(); break; }
    }
    return steps;
  }

  // What holds the robot now: the pointer, or a push that lasts a moment.
  grip(dt) {
    const { weight } = this.robotData, mass = weight * (this.world.mass ?? 1);
    if (this.held) return { ...this.held, stiffness: 150 * mass, damping: 14 * mass };
    if (!this.shove) return null;
    this.shove.left -= dt;
    const { dof, x, z, right, up } = this.shove, [px, pz] = this.pointOf(dof, x, z);
    if (this.shove.left <= 0) this.shove = null;
    return { dof, x, z, targetX: px + right, targetZ: pz + up, stiffness: mass, damping: 0 };
  }

  // A push of the torso: an acceleration, for a fifth of a second.
  push(right, up) {
    const dof = this.robotData.dof[0], [x1, z1, x2, z2] = this.robotData.ends[0], size = this.world.size ?? 1;
    this.shove = { dof, x: (size * (x1 + x2)) / 2, z: (size * (z1 + z2)) / 2, right, up, left: 0.2 };
  }

  pointOf(dof, x, z) {
    const [ax, az, angle] = this.now.places.subarray(3 * dof, 3 * dof + 3), s = Math.sin(angle), c = Math.cos(angle);
    return [ax + x * c + z * s, az + z * c - x * s];
  }

  parts() {
    const { dof, ends } = this.robotData, size = this.world.size ?? 1;
    return ends.map(([x1, z1, x2, z2], i) => [...this.pointOf(dof[i], size * x1, size * z1), ...this.pointOf(dof[i], size * x2, size * z2)]);
  }

  middle() {
    const [x1, y1, x2, y2] = this.parts()[0];
    return [(x1 + x2) / 2, (y1 + y2) / 2];
  }

  distance() { return this.now.position[0] - this.start; }

  paint() {
    const { robotData: robot, now } = this, size = this.world.size ?? 1;
    if (!now) return;
    const parts = this.parts(), mean = (k) => parts.reduce((sum, part) => sum + part[k] + part[k + 2], 0) / (2 * parts.length);
    this.follow(mean(0), this.view ? this.view.width / this.view.scale : Infinity);
    this.view = this.scene(robot, { parts, camera: [this.at, mean(1)], trail: this.trace, colour: this.colour(), fallen: !now.healthy, size });
    if (this.view && this.held) this.string();
  }

  // What it has come to, in words over its picture; written only where it has changed, for the browser's sake.
  tell(root) {
    const { now } = this, write = (name, text) => { const node = $(name, root); if (node.textContent !== text) node.textContent = text; };
    if (!now) return;
    write(".distance", `${format(this.distance(), 1)} m`);
    write(".score", `return ${format(now.total, 0)}`);
    const fell = $(".fell", root);
    if (fell.hidden !== now.healthy) fell.hidden = now.healthy;
  }

  // A calm camera: it moves as fast as the robot does on the whole, and drifts to its middle.
  follow(x, wide) {
    const now = this.trace.length;
    if (now > 1) {
      const first = this.trace[Math.max(0, now - Math.round(1 / this.robotData.seconds))], last = this.trace[now - 1];
      this.pace = (last[0] - first[0]) / Math.min(1, now * this.robotData.seconds);
    }
    this.at += (this.pace * this.moved) + (x - this.at) * 0.05;
    this.moved = 0;
    if (Math.abs(x - this.at) > wide / 3) this.at = x;
  }

  string() {
    const { context: c, held, view: { cx, cy, scale, width, height } } = this, place = (x, z) => [width / 2 + (x - cx) * scale, height / 2 - (z - cy) * scale];
    const from = place(...this.pointOf(held.dof, held.x, held.z)), to = place(held.targetX, held.targetZ);
    c.strokeStyle = c.fillStyle = resolved("--ink");
    c.lineWidth = 2;
    c.beginPath(); c.moveTo(...from); c.lineTo(...to); c.stroke();
    c.beginPath(); c.arc(...to, 5, 0, 7); c.fill();
  }

  worldAt(event) {
    const box = this.canvas.getBoundingClientRect(), { cx, cy, scale, width, height } = this.view;
    return [cx + (event.clientX - box.left - width / 2) / scale, cy - (event.clientY - box.top - height / 2) / scale];
  }

  // The part nearest to a point, and that point in the frame of its link; none if it is further than a finger's width.
  nearest(x, z) {
    let best = { away: 40 / this.view.scale };
    this.parts().forEach(([x1, z1, x2, z2], i) => {
      const dx = x2 - x1, dz = z2 - z1, share = clamp(((x - x1) * dx + (z - z1) * dz) / (dx * dx + dz * dz || 1), 0, 1);
      const px = x1 + share * dx, pz = z1 + share * dz, away = Math.hypot(x - px, z - pz) - this.robotData.radius[i];
      if (away < best.away) best = { away, dof: this.robotData.dof[i], px, pz };
    });
    if (best.dof === undefined) return null;
    const [ax, az, angle] = this.now.places.subarray(3 * best.dof, 3 * best.dof + 3), s = Math.sin(angle), c = Math.cos(angle);
    const [rx, rz] = [best.px - ax, best.pz - az];
    return { dof: best.dof, x: rx * c - rz * s, z: rx * s + rz * c };
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => {
      if (!this.view) return;
      const [x, z] = this.worldAt(event), part = this.nearest(x, z);
      if (!part) return;
      canvas.setPointerCapture(event.pointerId);
      this.held = { ...part, targetX: x, targetZ: z };
    });
    canvas.addEventListener("pointermove", (event) => { if (this.held) [this.held.targetX, this.held.targetZ] = this.worldAt(event); });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { this.held = null; });
    canvas.addEventListener("keydown", (event) => {
      const way = { ArrowLeft: [-9, 0], ArrowRight: [9, 0], ArrowUp: [0, 16], ArrowDown: [0, -9] }[event.key];
      if (!way || !this.now) return;
      event.preventDefault();
      this.push(...way);
    });
  }
}

// Calls `work` with the seconds since the last frame, as long as a part of the page is in sight; else it costs nothing.
function everyFrame(node, work) {
  let last = null, waiting = 0;
  const frame = (now) => {
    const passed = Math.min((now - (last ?? now)) / 1000, 0.1);
    last = now;
    waiting = requestAnimationFrame(frame);
    work(passed, now);
  };
  new IntersectionObserver(([{ isIntersecting }]) => {
    cancelAnimationFrame(waiting);
    last = null;
    if (isIntersecting) waiting = requestAnimationFrame(frame);
  }).observe(node);
}

// Lines on a canvas: [{ points: [[x, y], …], colour, dash, wide, pale }], on an axis from 0 to `end`; a point without a
// value breaks its line. Marks are { at, text, shaded }: where phases begin. The cursor is a place on the axis.
const PAD = { left: 54, right: 8, top: 18, bottom: 8 };

function drawLines(canvas, lines, { end = 1, marks = [], digits = null, zero = true, cursor = null } = {}) {
  const c = canvas.getContext("2d"), ratio = Math.min(devicePixelRatio || 1, 2), width = canvas.clientWidth, height = canvas.clientHeight;
  if (!width) return;
  [canvas.width, canvas.height] = [width * ratio, height * ratio];
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  const values = lines.flatMap(({ points }) => points.map(([, y]) => y)).filter(isNumber);
  let low = values.reduce((a, b) => Math.min(a, b), zero ? 0 : Infinity), high = values.reduce((a, b) => Math.max(a, b), zero ? 0 : -Infinity);
  const told = high - low >= 1e-9 ? [low, high] : [low];  // a range that was made up is not written beside its axis
  if (told.length < 2) [low, high] = [Number.isFinite(low) ? low : 0, (Number.isFinite(low) ? low : 0) + 1];
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
  if (values.length) for (const value of told) c.fillText(digits === null ? short(value) : format(value, digits), PAD.left - 6, Y(value) + (value === high ? 5 : 0));
  for (const { points, colour, dash = [], wide = false, pale = false } of lines) {
    c.strokeStyle = resolved(colour);
    c.globalAlpha = pale ? 0.75 : 1;
    c.lineWidth = wide ? 3 : pale ? 1.5 : 2;
    c.setLineDash(dash);
    c.beginPath();
    let pen = false;
    points.forEach(([x, y], i) => {
      if (isNumber(y)) c[pen ? "lineTo" : "moveTo"](X(x), Y(y));
      if (isNumber(y) && !pen && !isNumber(points[i + 1]?.[1])) c.arc(X(x), Y(y), 1, 0, 7);  // a line of one point
      pen = isNumber(y);
    });
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
