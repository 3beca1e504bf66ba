// The page: two robots in one world and on one time line.
const SIDES = [{ colour: "--task-0", dash: [] }, { colour: "--task-1", dash: [7, 3] }];

class LabSide {
  constructor(root, lab, number) {
    Object.assign(this, { root, lab, run: null, moment: null, ...SIDES[number] });
    this.stage = new LiveStage($("canvas", root), lab.data.engine, () => this.colour);
    this.pick = $(".pick-run", root);
    this.fixed = $(".pick-when", root);
    this.pick.addEventListener("change", () => { this.choose(Number(this.pick.value)); lab.changed(); });
    this.fixed.addEventListener("change", () => { this.show(); lab.changed(); });
  }

  choose(number) {
    const before = this.fixed.selectedOptions[0]?.textContent;
    this.run = this.lab.data.runs[number];
    this.pick.value = number;
    this.moment = null;
    const ends = this.run.moments.map((moment, i) => [i, moment]).filter(([, moment]) => moment.end || !moment.generation);
    this.fixed.replaceChildren(make("option", { value: "" }, "on the time line"), ...ends.map(([i, moment]) => make("option", { value: i }, moment.label)));
    this.stay(before);
    this.lab.stretched();
  }

  // At a moment of its own, by its name; or at the time line's, if there is no such moment.
  stay(label) {
    this.fixed.value = [...this.fixed.options].find((option) => option.value && option.textContent === label)?.value ?? "";
    this.show();
  }

  // The side's own moment, or the last one up to the time line's place that can be shown on this task.
  show() {
    const { task, time } = this.lab, offered = this.run.moments.filter((moment) => moment.tasks.includes(task.name)), own = this.run.moments[this.fixed.value || -1];
    const moment = offered.includes(own) ? own : offered.reduce((last, next) => (next.time <= time + 1e-9 ? next : last), offered[0]);
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
    this.stage.tell(this.root);
  }

  // In an address: which run, and which moment if it is not the time line's.
  get name() { return `${keyOf(this.run)}|${this.fixed.value ? this.moment.label : ""}`; }
}

const keyOf = (run) => `${run.condition}|${run.order}|${run.seed}`;

class Lab {
  // Keys are heard in `heard`: all of its own page, or only where the robots are.
  constructor(data, heard) {
    Object.assign(this, { data, heard, time: 0, speed: 1, running: !wantsCalm.matches, world: {}, gust: 0, frames: 0, steps: 0, busy: 0 });
    this.task = data.robots[0];
    this.root = $("#lab");
    this.slider = $("#time");
    this.sides = $$(".side", this.root).map((root, i) => new LabSide(root, this, i));
    this.tabs();
    this.offer();
    this.listen();
    this.open();
    onTheme.push(() => this.draw());
    this.label();
    everyFrame($(".stages", this.root), (passed, now) => this.frame(passed, now));
  }

  // What was lost most beside what kept it best, or beside itself before that; unless the address says otherwise.
  open() {
    const { runs, robots } = this.data, { task, lost, kept } = Lab.mostLost(this.data), asked = new URLSearchParams(location.search);
    this.task = robots.find((robot) => robot.name === (asked.get("task") ?? task)) ?? robots[0];
    const number = (name) => runs.findIndex((run) => asked.get(name)?.startsWith(`${keyOf(run)}|`));
    const [left, right] = [number("left"), number("right")];
    this.time = Number(asked.get("time") ?? runs[left < 0 ? lost : left].stream.length) || 0;
    this.sides[0].choose(left < 0 ? lost : left);
    this.sides[1].choose(right < 0 ? kept : right);
    if (left >= 0) this.sides[0].stay(asked.get("left").slice(keyOf(runs[left]).length + 1));
    else if (lost === kept) this.sides[0].stay(runs[lost].moments.find((moment) => moment.end && runs[lost].stream[moment.stage] === this.task.name)?.label);
    if (right >= 0) this.sides[1].stay(asked.get("right").slice(keyOf(runs[right]).length + 1));
    this.seek(this.time);
    this.press();
  }

  // After each choice of the reader; the address keeps it.
  changed() {
    this.draw();
    keepInAddress({ task: this.task.name, time: this.time.toFixed(3), left: this.sides[0].name, right: this.sides[1].name });
  }

  get end() { return Math.max(...this.sides.map((side) => side.run?.stream.length ?? 1)); }

  stretched() {
    this.slider.max = this.end;
    this.slider.value = this.time;
  }

  tabs() {
    $("#tasks").replaceChildren(...this.data.robots.map((robot, i) => {
      const button = make("button", { type: "button", "aria-pressed": "false" }, this.data.tasks[i]);
      button.addEventListener("click", () => { this.task = robot; this.sides.forEach((side) => side.show()); this.press(); this.changed(); });
      return button;
    }));
  }

  press() { $$("#tasks button").forEach((button, i) => button.setAttribute("aria-pressed", String(this.data.robots[i] === this.task))); }

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
    const { sides, task, end } = this, { stream } = sides[0].run;
    const lines = sides.map(({ run, colour, dash }) => ({ colour, dash, points: run.curves.flatMap((curve) => (curve.returns[task.name] ?? []).map((value, i) => [curve.times[i], value])) }));
    const marks = stream.map((name, at) => ({ at, text: `learns ${name.replaceAll("-v5", "")}`, shaded: at % 2 > 0 }));
    drawLines($("#returns"), lines, { end, marks, cursor: this.time });
    sides.forEach((side) => side.paint());
  }

  frame(passed, now) {
    if (this.running) {
      const began = performance.now();
      this.weather(passed);
      this.sides.forEach((side) => { this.steps += side.stage.advance(passed * this.speed); });
      this.busy += performance.now() - began;
      this.sides.forEach((side) => side.stage.paint());  // pictures first: reading a size after writing a text costs a layout
      this.sides.forEach((side) => side.stage.tell(side.root));
    }
    this.measure(now);
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
    $("#lab-speed").addEventListener("change", (event) => { this.speed = Number(event.target.value); });
    for (const [id, record] of [["#film", film], ["#film-gif", gif]]) {
      $(id).addEventListener("click", () => {
        if (!this.running) this.toggle();
        record($(id), this.sides.map((side) => side.stage.canvas), () => this.sides.map((side) => `${side.run.condition}, ${$(".outcome", side.root).textContent}`));
      });
    }
    this.slider.addEventListener("input", () => this.seek(Number(this.slider.value)));
    this.slider.addEventListener("change", () => this.changed());
    const canvas = $("#returns"), at = (event) => this.seek(axisAt(canvas, event, this.end));
    canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); at(event); });
    canvas.addEventListener("pointermove", (event) => { if (event.buttons) at(event); });
    canvas.addEventListener("pointerup", () => this.changed());
    $$("[data-factor]").forEach((input) => input.addEventListener("input", () => this.change()));
    $("#calm").addEventListener("click", () => { $$("[data-factor]").forEach((input) => { input.value = 1; }); this.change(); });
    this.heard.addEventListener("keydown", (event) => {
      if (/^(SELECT|BUTTON|SUMMARY|A|INPUT)$/.test(event.target.tagName) || event.ctrlKey || event.metaKey || event.altKey) return;
      const action = { " ": () => this.toggle(), p: () => this.pushBoth(9, 3), r: () => this.sides.forEach((side) => side.stage.reset()) }[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    });
    new ResizeObserver(() => this.draw()).observe($(".stages", this.root));
  }

  change() {
    for (const input of $$("[data-factor]")) {
      this.world[input.dataset.factor] = Number(input.value);
      input.nextElementSibling.textContent = `${Number(input.value).toFixed(2)}\u00d7`;
    }
    this.sides.forEach((side) => side.stage.change({ ...this.world }));
    this.draw();
  }

  // The task and the run that lost most of what it had learnt, as a share of what any run reached; and the run of that
  // order, as far in it, which has most of it at the end.
  static mostLost({ runs, robots }) {
    let found = { task: robots[0].name, lost: 0, kept: 0, loss: -Infinity };
    const last = (run, stage, task) => run.curves[stage]?.returns[task]?.at(-1) ?? NaN, end = (run, task) => last(run, run.curves.length - 1, task);
    for (const { name: task } of robots) {
      const reached = Math.max(1, ...runs.flatMap((run) => run.curves.flatMap((curve) => curve.returns[task] ?? [])).filter(isNumber));
      runs.forEach((run, lost) => {
        const loss = (last(run, run.stream.indexOf(task), task) - end(run, task)) / reached;
        if (!(loss > found.loss)) return;
        const others = runs.map((other, i) => [i, other]).filter(([, other]) => other.order === run.order && other.curves.length >= run.curves.length).map(([i, other]) => [i, end(other, task)]);
        found = { task, lost, loss, kept: others.reduce((best, next) => (next[1] > best[1] ? next : best), [lost, end(run, task)])[0] };
      });
    }
    return found;
  }
}

// In its own page, or inside a report.
function startLab(plain, heard = document) {
  return unpack(plain).then((data) => {
    globalThis.lab = new Lab(data, heard);
    globalThis.training = new Training(globalThis.lab);
  }).catch((error) => {
    $("#wrong").textContent = `The engine could not be started: ${error}`;
    $("#wrong").hidden = false;
  });
}
