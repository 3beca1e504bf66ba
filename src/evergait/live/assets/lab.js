// The page: two robots in one world and on one time line.
const SIDES = [{ colour: "--task-0", dash: [] }, { colour: "--task-1", dash: [7, 3] }];

class LabSide {
  constructor(root, lab, number) {
    Object.assign(this, { root, lab, run: null, moment: null, ...SIDES[number] });
    this.stage = new LiveStage($("canvas", root), lab.data.engine, () => this.colour);
    this.pick = $(".pick-run", root);
    this.pick.addEventListener("change", () => { this.choose(Number(this.pick.value)); lab.draw(); });
  }

  choose(number) {
    this.run = this.lab.data.runs[number];
    this.pick.value = number;
    this.moment = null;
    this.show();
    this.lab.stretched();
  }

  // The last moment up to the time line's place that can be shown on this task.
  show() {
    const { task, time } = this.lab, offered = this.run.moments.filter((moment) => moment.tasks.includes(task.name));
    const moment = offered.reduce((last, next) => (next.time <= time + 1e-9 ? next : last), offered[0]);
    const network = networkOf(this.run.policy, task, moment.statistics.get(task.name));
    if (this.body !== task.name || this.layout !== this.run.policy) this.stage.task(task, network, moment.theta);
    else if (moment !== this.moment) this.stage.policy(network, moment.theta);
    Object.assign(this, { moment, body: task.name, layout: this.run.policy });
    const value = moment.returns[task.name], known = !isNumber(value) ? "" : ` \u00b7 return ${format(value, 0)} when evaluated`;
    $(".outcome", this.root).textContent = `${moment.label}${known}`;
    $(".episode", this.root).textContent = `${this.run.condition}, seed ${this.run.seed}${moment.sha256 ? `, θ ${moment.sha256.slice(0, 16)}…` : ""}`;
    this.stage.canvas.setAttribute("aria-label", `${task.name}, ${this.run.condition}, ${moment.label}. Arrow keys push the robot.`);
  }

  paint() {
    this.stage.paint();
    const { now } = this.stage;
    $(".distance", this.root).textContent = `${format(this.stage.distance(), 1)} m`;
    $(".score", this.root).textContent = `return ${format(now.total, 0)}`;
    $(".fell", this.root).hidden = now.healthy;
  }
}

class Lab {
  constructor(data) {
    Object.assign(this, { data, time: 0, speed: 1, running: !wantsCalm.matches, world: {}, gust: 0, frames: 0, steps: 0, busy: 0 });
    this.task = data.robots[0];
    this.chart = new Returns($("#returns"));
    this.slider = $("#time");
    this.sides = $$(".side").map((root, i) => new LabSide(root, this, i));
    this.tabs();
    this.offer();
    this.listen();
    this.open();
    onTheme.push(() => this.draw());
    this.label();
    requestAnimationFrame((now) => this.frame(now));
  }

  // Two conditions of one order, at the end of the stream: what was lost beside what was kept.
  open() {
    const { runs } = this.data, other = runs.findIndex((run) => run.condition !== runs[0].condition && run.order === runs[0].order);
    this.time = runs[0].stream.length;
    const asked = new URLSearchParams(location.hash.slice(1));
    const task = this.data.robots.find((robot) => robot.name === asked.get("task"));
    if (task) this.task = task;
    if (asked.get("time")) this.time = Number(asked.get("time")) || 0;
    this.sides[0].choose(Math.min(Number(asked.get("left")) || 0, runs.length - 1));
    this.sides[1].choose(Math.min(Number(asked.get("right") ?? Math.max(other, 0)) || 0, runs.length - 1));
    this.seek(this.time);
    this.press();
  }

  // The address keeps the view.
  remember() {
    const view = new URLSearchParams({ task: this.task.name, time: this.time.toFixed(3), left: this.sides[0].pick.value, right: this.sides[1].pick.value });
    history.replaceState(null, "", `#${view}`);
  }

  get end() { return Math.max(...this.sides.map((side) => side.run?.stream.length ?? 1)); }

  stretched() {
    this.slider.max = this.end;
    this.slider.value = this.time;
  }

  tabs() {
    $("#tasks").replaceChildren(...this.data.robots.map((robot, i) => {
      const button = make("button", { type: "button", "aria-pressed": "false" }, this.data.tasks[i]);
      button.addEventListener("click", () => { this.task = robot; this.sides.forEach((side) => side.show()); this.press(); this.draw(); });
      return button;
    }));
  }

  press() {
    $$("#tasks button").forEach((button, i) => button.setAttribute("aria-pressed", String(this.data.robots[i] === this.task)));
    this.remember();
  }

  // The runs to choose from, which grow by what is trained here.
  offer() {
    const names = this.data.runs.map((run, i) => [i, `${run.condition} \u00b7 ${run.order}${run.seed ? ` \u00b7 seed ${run.seed}` : ""}`]);
    this.sides.forEach((side) => {
      const before = side.pick.value;
      side.pick.replaceChildren(...names.map(([value, text]) => make("option", { value }, text)));
      if (before) side.pick.value = before;
    });
  }

  seek(time) {
    this.time = clamp(time, 0, this.end);
    this.slider.value = this.time;
    this.sides.forEach((side) => side.show());
    const [{ moment, run }] = this.sides, words = `${moment.label}: ${run.stream.map((name) => name.replaceAll("-v5", "")).join(", then ")}`;
    $("#when").textContent = words;
    this.slider.setAttribute("aria-valuetext", words);
    this.draw();
  }

  draw() {
    this.chart.draw(this.sides, this.task.name, this.time, this.end);
    this.sides.forEach((side) => side.paint());
  }

  frame(now) {
    const passed = Math.min((now - (this.last ?? now)) / 1000, 0.1);
    this.last = now;
    if (this.running && !document.hidden) {
      const began = performance.now();
      this.weather(passed);
      this.sides.forEach((side) => { this.steps += side.stage.advance(passed * this.speed); });
      this.busy += performance.now() - began;
      this.sides.forEach((side) => side.paint());
    }
    this.measure(now);
    requestAnimationFrame((next) => this.frame(next));
  }

  // The same gusts for both.
  weather(seconds) {
    this.gust -= seconds * this.speed;
    if (!$("#storm").checked || this.gust > 0) return;
    this.gust = 0.8 + 1.6 * Math.random();
    this.pushBoth((Math.random() < 0.5 ? -1 : 1) * (4 + 8 * Math.random()), 4 * Math.random());
  }

  pushBoth(right, up) { this.sides.forEach((side) => side.stage.push(right, up)); }

  measure(now) {
    this.frames++;
    this.since ??= now;
    if (now - this.since < 1000) return;
    const seconds = (now - this.since) / 1000;
    this.rate = this.frames / seconds;
    const cost = this.steps ? `, ${format((1000 * this.busy) / this.steps, 0)} µs per step` : "";
    $("#pace").textContent = `${format(this.rate, 0)} frames/s, ${format(this.steps / seconds, 0)} steps/s${cost}`;
    [this.frames, this.steps, this.busy, this.since] = [0, 0, 0, now];
  }

  label() { $("#run").textContent = this.running ? "Pause" : "Run"; }

  toggle() {
    this.running = !this.running;
    this.label();
  }

  listen() {
    $("#run").addEventListener("click", () => this.toggle());
    $("#again").addEventListener("click", () => { this.sides.forEach((side) => side.stage.reset()); this.draw(); });
    $("#push").addEventListener("click", () => this.pushBoth(9, 3));
    $("#speed").addEventListener("change", (event) => { this.speed = Number(event.target.value); });
    $("#film").addEventListener("click", () => film($("#film"), this.sides.map((side) => side.stage.canvas), () => this.sides.map((side) => $(".outcome", side.root).textContent)));
    this.slider.addEventListener("input", () => this.seek(Number(this.slider.value)));
    this.slider.addEventListener("change", () => this.remember());
    const canvas = $("#returns"), at = (event) => this.seek(((event.offsetX - this.chart.pad.left) / (canvas.clientWidth - this.chart.pad.left - this.chart.pad.right)) * this.end);
    canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); at(event); });
    canvas.addEventListener("pointermove", (event) => { if (event.buttons) at(event); });
    canvas.addEventListener("pointerup", () => this.remember());
    $$("[data-factor]").forEach((input) => input.addEventListener("input", () => this.change()));
    $("#calm").addEventListener("click", () => { $$("[data-factor]").forEach((input) => { input.value = 1; }); this.change(); });
    document.addEventListener("keydown", (event) => {
      if (/^(SELECT|BUTTON|SUMMARY|A|INPUT)$/.test(event.target.tagName) || event.ctrlKey || event.metaKey || event.altKey) return;
      const action = { " ": () => this.toggle(), p: () => this.pushBoth(9, 3), r: () => this.sides.forEach((side) => side.stage.reset()) }[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    });
    new ResizeObserver(() => this.draw()).observe($(".stages"));
  }

  change() {
    for (const input of $$("[data-factor]")) {
      this.world[input.dataset.factor] = Number(input.value);
      input.nextElementSibling.textContent = `${Number(input.value).toFixed(2)}\u00d7`;
    }
    this.sides.forEach((side) => side.stage.change({ ...this.world }));
    this.draw();
  }
}

function startLab() {
  document.documentElement.classList.add("scripted");
  startTheme();
  const plain = JSON.parse($("#data").textContent);
  unpack(plain).then((data) => {
    globalThis.lab = new Lab(data);
    globalThis.training = new Training(globalThis.lab);
  }).catch((error) => {
    $("#wrong").textContent = `The engine could not be started: ${error}`;
    $("#wrong").hidden = false;
  });
}
