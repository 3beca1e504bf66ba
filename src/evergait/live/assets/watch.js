// The tree of phases: a row per run, a chip per phase; runs that begin alike share their first chips' state.
const taskName = (task) => String(task).replace(/-v\d+/, "");
// What a phase learns: the task of its place in the stream, or the whole stream at once.
const learntIn = (cell, stage, verb = "") => (cell.phases.length === cell.stream.length ? `${verb}${taskName(cell.stream[stage])}` : cell.phases.length === 1 ? `${verb}all tasks` : `phase ${stage + 1}`);

class Phases {
  constructor(root, choose) {
    Object.assign(this, { root, choose, chips: new Map(), chosen: null });
  }

  show(training, cells) {
    this.chips.clear();
    this.root.replaceChildren(...cells.map((cell) => {
      const chips = cell.phases.map((name, stage) => {
        const chip = make("button", { type: "button", class: "chip", "aria-pressed": "false" }, learntIn(cell, stage));
        chip.addEventListener("click", () => this.choose(cell, name, stage));
        if (!this.chips.has(name)) this.chips.set(name, []);
        this.chips.get(name).push(chip);
        return chip;
      });
      return make("div", { class: "cell" }, [make("span", { class: "cell-name", title: nameOf(cell) }, nameOf(cell)), make("span", { class: "chips" }, chips)]);
    }));
    for (const [name, state] of Object.entries(training.phases)) this.update(name, state);
    this.press(this.chosen);
  }

  update(name, { state, done, detail }) {
    for (const chip of this.chips.get(name) ?? []) {
      chip.className = `chip ${/^(running|queued|done|stopped|failed)$/.test(state) ? state : "queued"}`;
      chip.style.setProperty("--part", `${(100 * done).toFixed(1)}%`);
      chip.title = detail ? `${state}: ${detail}` : state;
    }
  }

  press(name) {
    this.chosen = name;
    for (const [mine, chips] of this.chips) chips.forEach((chip) => chip.setAttribute("aria-pressed", String(mine === name)));
  }
}

const nameOf = (cell) => `${cell.condition} \u00b7 ${cell.order}${cell.seed ? ` \u00b7 seed ${cell.seed}` : ""}`;

// Whether somebody is here: a page that nobody touches rests while something trains, for what it draws would take its share
// of the machine that trains.
const AWAY_SECONDS = 30, RESTING_SECONDS = 10;

class Reader {
  constructor() {
    Object.assign(this, { moved: performance.now(), back: [] });
    for (const sign of ["pointermove", "pointerdown", "keydown", "scroll"]) addEventListener(sign, () => this.move(), { passive: true, capture: true });
  }

  get away() { return performance.now() - this.moved > 1000 * AWAY_SECONDS; }

  move() {
    const { away } = this;
    this.moved = performance.now();
    if (away) this.back.forEach((tell) => tell());
  }
}

// Conditions differ in colour and in dashes, which repeat after seven and after eight: 56 are told apart, eight without colour.
const styleOf = (condition) => ({ colour: `--task-${condition % 7}`, dash: (dashOf(condition).match(/\d+/g) ?? []).map(Number) });
const sampleOf = (condition) => svg("svg", { viewBox: "0 0 36 8", "aria-hidden": "true" }, svg("path", { d: "M0 4H36", stroke: colourOf(condition), "stroke-width": 3, "stroke-dasharray": dashOf(condition) }));

// The page that follows trainings: it hears of changes by server-sent events, and asks for curves and policies it shows.
const MOST_LINES = 60, AGAIN_SECONDS = 3;
const DIAGNOSTICS = { fitness_mean: "population's mean return", fitness_sd: "its standard deviation", fitness_best: "its best", gradient_norm: "length of the gradient", step_norm: "length of the step", horizon: "episodes cut at" };

class Watcher {
  constructor(engine) {
    Object.assign(this, { engine, trainings: [], training: null, task: null, hidden: new Set(), curves: new Map(), asked: new Map(), shown: null, waiting: [], drawn: 0 });
    this.reader = new Reader();
    this.reader.back.push(() => this.changed([]));
    this.phases = new Phases($("#cells"), (cell, name, stage) => { this.chosen = true; this.open(cell, name, stage); });
    this.gait = new Gaits(engine, () => this.rests);
    $("#words").addEventListener("input", () => this.filter());
    $("#filter").addEventListener("submit", (event) => event.preventDefault());
    this.opening = ["#name", "#summary"].map((name) => [name, $(name).textContent]);
    onTheme.push(() => this.draw());
    addEventListener("resize", () => this.draw());
    addEventListener("visibilitychange", () => this.listen());
    this.listen();
  }

  get rests() { return this.reader.away && Object.values(this.training?.phases ?? {}).some(({ state }) => state === "running"); }

  // As long as somebody sees the page: for one that is hidden the server looks at no files.
  listen() {
    clearTimeout(this.again);
    this.source?.close();
    if (document.hidden) return;
    const source = this.source = new EventSource("events"), link = $("#link");
    const lost = (words) => {
      link.textContent = words;
      source.close();
      this.again = setTimeout(() => this.listen(), 1000 * AGAIN_SECONDS);
    };
    source.addEventListener("open", () => { link.textContent = "live"; });
    source.addEventListener("error", () => lost("not connected: this is what was last seen"));
    source.addEventListener("refused", ({ data }) => lost(JSON.parse(data)));
    source.addEventListener("everything", ({ data }) => this.everything(JSON.parse(data)));
    source.addEventListener("changes", ({ data }) => this.changed(JSON.parse(data)));
  }

  everything({ trainings }) {
    this.trainings = trainings;
    this.waiting = [];  // older than what has just come
    $("#trainings").replaceChildren(...(trainings.length > 1 ? trainings : []).map((training) => {
      const button = make("button", { type: "button", "aria-pressed": "false", title: training.path }, training.title);
      button.addEventListener("click", () => this.choose(training));
      return button;
    }));
    const busy = (training) => Object.values(training.phases).some(({ state }) => state === "running");
    const before = trainings.find((training) => training.path === this.training?.path);
    if (trainings.length) this.choose(before ?? trainings.find(busy) ?? trainings[0]);
    else this.empty();
  }

  // As the page was before there was anything.
  empty() {
    this.training = null;
    this.leave();
    $$(".known").forEach((node) => { node.hidden = true; });
    for (const [name, words] of this.opening) $(name).textContent = words;
  }

  // No phase is shown.
  leave() {
    Object.assign(this, { shown: null, chosen: false });
    $("#phase").hidden = true;
    this.gait.clear("");
  }

  choose(training) {
    const other = this.training?.path !== training.path;
    $$(".known").forEach((node) => { node.hidden = false; });
    this.training = training;
    if (this.shown) this.shown.cell = training.cells.find((cell) => nameOf(cell) === nameOf(this.shown.cell)) ?? this.shown.cell;
    $$("#trainings button").forEach((button, i) => button.setAttribute("aria-pressed", String(this.trainings[i] === training)));
    $("#name").textContent = training.title;
    $("#report").hidden = !training.report;
    $("#report").href = `report?training=${encodeURIComponent(training.path)}`;
    if (other) this.hidden.clear();
    if (other || !Object.hasOwn(training.phases, this.shown?.name)) this.leave();
    this.conditions = [...new Set(training.cells.map((cell) => cell.condition))];
    this.choices();
    if (!training.tasks.includes(this.task)) this.task = training.tasks[0];
    $("#tasks").replaceChildren(...training.tasks.map((task) => {
      const button = make("button", { type: "button", "aria-pressed": String(task === this.task) }, taskName(task));
      button.addEventListener("click", () => { this.task = task; $$("#tasks button").forEach((one) => one.setAttribute("aria-pressed", String(one === button))); this.draw(); });
      return button;
    }));
    this.filter();
    this.count();
    this.lead();
    this.tell();
  }

  // What is shown is what runs, unless the reader has chosen a phase.
  lead() {
    const { cells, phases } = this.training, runs = (name) => phases[name]?.state === "running";
    if (this.chosen || (this.shown && runs(this.shown.name))) return;
    const cell = cells.find((one) => one.phases.some(runs)) ?? (this.shown ? null : cells[cells.length - 1]);
    if (!cell) return;
    const stage = Math.max(cell.phases.findIndex(runs), 0);
    this.open(cell, cell.phases[stage], stage);
  }

  choices() {
    const boxes = this.conditions.map((condition) => {
      const box = make("input", { type: "checkbox" });
      box.checked = !this.hidden.has(condition);
      box.addEventListener("change", () => { this.hidden[box.checked ? "delete" : "add"](condition); this.filter(); });
      return make("label", {}, [box, " ", condition]);
    });
    $("#conditions").replaceChildren(make("legend", { class: "note" }, "Conditions"), ...boxes);
  }

  // Every word must be in a run's name.
  get cells() {
    const words = $("#words").value.toLowerCase().split(/\s+/).filter(Boolean);
    return this.training.cells.filter((cell) => !this.hidden.has(cell.condition) && words.every((word) => `${nameOf(cell)} seed ${cell.seed}`.toLowerCase().includes(word)));
  }

  filter() {
    if (!this.training) return;
    this.phases.show(this.training, this.cells);
    this.draw();
    this.ask();
  }

  changed(changes) {
    this.waiting.push(...changes);
    if (this.rests && performance.now() - this.drawn < 1000 * RESTING_SECONDS) return;
    if (!this.training) return;
    let mine = false;
    this.drawn = performance.now();
    for (const [path, name, state] of this.waiting.splice(0)) {
      const training = this.trainings.find((one) => one.path === path);
      if (!training) continue;
      training.phases[name] = state;
      if (training !== this.training) continue;
      mine = true;
      this.phases.update(name, state);
    }
    if (mine) this.count();
    if (mine) this.lead();
    this.tell();  // even without news: what could not be had before is asked for again
    this.ask();
  }

  count() {
    const states = Object.values(this.training.phases), of = (state) => states.filter((one) => one.state === state);
    const parts = ["running", "queued", "done", "stopped", "failed"].map((state) => [of(state).length, state]).filter(([n]) => n).map(([n, state]) => `${n} ${state}`);
    const rates = new Map(), left = Math.max(0, ...of("running").map((one) => one.left ?? 0));
    for (const { unit, rate } of of("running")) if (isNumber(rate)) rates.set(unit, (rates.get(unit) ?? 0) + rate);
    const pace = rates.size ? ` \u00b7 ${[...rates].map(([unit, rate]) => `${format(rate, rate < 10 ? 1 : 0)} ${unit}`).join(" and ")} per second` : "", time = left ? ` \u00b7 ${format(left / 60, 1)} minutes left for what runs` : "";
    $("#summary").textContent = `${states.length} phases: ${parts.join(", ")}${pace}${time}`;
    $("#whole").value = states.reduce((sum, one) => sum + one.done, 0) / Math.max(states.length, 1);
  }

  // Curves of the phases in sight whose files have changed since they were asked for. What was not answered is forgotten,
  // so that the server's next word, which comes even without news, has it asked for again.
  async ask() {
    const { training } = this, wanted = [], before = this.curves.size;
    for (const cell of this.cells.slice(0, MOST_LINES)) {
      for (const name of cell.phases) {
        const version = training.phases[name]?.version ?? "0";
        if (version === "0") [this.asked, this.curves].forEach((known) => known.delete(name));  // its files are gone
        if (version === "0" || this.asked.get(name) === version) continue;
        this.asked.set(name, version);
        wanted.push([name, version]);
      }
    }
    if (this.curves.size < before) this.draw();
    for (let i = 0; i < wanted.length; i += 80) {
      const part = wanted.slice(i, i + 80), names = part.map(([name]) => name).join(","), found = await this.get("curves", { training: training.path, names });
      if (!found || found.error) {
        for (const [name, version] of part) if (this.asked.get(name) === version) this.asked.delete(name);
        continue;
      }
      part.forEach(([name]) => this.curves.delete(name));
      for (const [name, curve] of Object.entries(found)) this.curves.set(name, curve);
      this.draw();
    }
  }

  async get(page, asked) {
    try {
      const answer = await fetch(`${page}?${new URLSearchParams(asked)}`);
      return await answer.json();
    } catch {
      return null;  // the server is gone, which its link says already
    }
  }

  draw() {
    if (!this.training) return;
    const shown = this.cells.slice(0, MOST_LINES), end = Math.max(1, ...shown.map((cell) => cell.phases.length));
    const lines = shown.map((cell) => ({
      ...styleOf(this.conditions.indexOf(cell.condition)),
      wide: this.shown?.cell === cell,
      pale: this.shown?.cell !== cell,
      points: cell.phases.flatMap((name, stage) => this.points(this.curves.get(name)?.returns[this.task], name, stage)),
    }));
    const learns = (at) => new Set(shown.filter((cell) => cell.phases.length > at).map((cell) => learntIn(cell, at, "learns ")));
    const marks = Array.from({ length: end }, (_, at) => ({ at, text: learns(at).size === 1 ? [...learns(at)][0] : `phase ${at + 1}` }));
    drawLines($("#curves"), lines, { end, marks });
    const more = this.cells.length > MOST_LINES ? make("span", {}, `the first ${MOST_LINES} of ${this.cells.length} runs`) : "";
    $("#key").replaceChildren(...this.conditions.filter((name) => !this.hidden.has(name)).map((name) => make("span", { class: "key-item" }, [sampleOf(this.conditions.indexOf(name)), name])), more);
    this.diagnose();
  }

  // A phase is one unit of time; one that is being trained has come as far as its state says.
  points(values, name, stage) {
    const curve = this.curves.get(name), reached = this.training.phases[name]?.done ?? 1;
    if (!curve || !values) return [];
    const last = curve.generations[curve.generations.length - 1] || 1, share = Math.max(reached, 0.02);
    return values.map((value, i) => [stage + (curve.generations[i] / last) * share, value]);
  }

  open(cell, name, stage) {
    this.shown = { cell, name, stage };
    this.phases.press(name);
    $("#phase").hidden = false;
    this.tell();
    this.draw();
    this.ask();
  }

  tell() {
    if (!this.shown) return;
    const { cell, name, stage } = this.shown, { state, detail, version } = this.training.phases[name] ?? { state: "queued", detail: "" };
    $("#phase-title").textContent = `${learntIn(cell, stage)}: ${nameOf(cell)}`;
    $("#detail").textContent = `${state}${detail ? `, ${detail}` : ""} \u00b7 phase ${name}`;
    if (!version || version === "0") this.gait.clear("No checkpoint yet.");
    else this.gait.follow(() => this.get("policy", { training: this.training.path, name }), `${name} ${state === "done" ? version : version.split("-")[1] ?? ""}`, cell.stream[stage]);
  }

  diagnose() {
    const found = this.curves.get(this.shown?.name)?.diagnostics ?? {}, names = Object.keys(DIAGNOSTICS).filter((name) => found[name]?.some((value) => isNumber(value) && value !== 0));
    const root = $("#diagnostics");
    if (root.dataset.names !== names.join()) {
      root.dataset.names = names.join();
      root.replaceChildren(...names.map((name) => make("div", {}, [make("p", { class: "note" }, DIAGNOSTICS[name]), make("canvas", { class: "lines", role: "img", "aria-label": DIAGNOSTICS[name] })])));
    }
    names.forEach((name, i) => {
      const points = found[name].map((value, k) => [k / Math.max(found[name].length - 1, 1), value]);
      drawLines($$("canvas", root)[i], [{ points, colour: "--task-0", wide: true }], { digits: 2, zero: false });
    });
    if (this.shown && !names.length) root.replaceChildren(make("p", { class: "note" }, "This phase has no diagnostics yet."));
  }
}

// The newest checkpoint's gait; asked for again when there is a newer one.
class Gaits {
  constructor(engine, mayRest) {
    Object.assign(this, { engine, mayRest, running: !wantsCalm.matches, key: "", robots: [], task: null, rests: false, words: "" });
    this.stage = new LiveStage($("#gait"), engine, () => "--task-0");
    $("#pause").addEventListener("click", () => { this.running = !this.running; this.label(); });
    this.label();
    everyFrame($("#gait"), (passed) => this.frame(passed));
  }

  label() { $("#pause").textContent = this.running ? "Pause" : "Run"; }
  note(words = this.words) {
    this.words = words;
    $("#gait-note").textContent = this.rests && this.stage.now ? `${words}; it rests until you move, for something trains` : words;
  }

  async follow(get, key, task) {
    if (key === this.key) return;
    this.key = key;
    const found = await get();
    if (this.key !== key) return;
    if (!found) return this.clear("There was no answer; it will be asked for again.");
    if (found.error) return this.clear(found.error, key);
    this.robots = found.robots.map(unpackRobot);
    this.policy = unpackPolicy(found.policy, this.robots);
    this.theta = floats(found.theta);
    this.statistics = new Map(Object.entries(found.statistics).map(([name, sums]) => [name, doubles(sums)]));
    const layout = JSON.stringify(found.policy);  // another layout of θ needs another robot, even of the same task
    if (layout !== this.layout) this.body = null;
    this.layout = layout;
    this.choose(this.robots.find((robot) => robot.name === (this.asked ?? task)) ?? this.robots.find((robot) => robot.name === task) ?? this.robots[0]);
    this.note(`as it is after generation ${found.generation}`);
  }

  // Nothing of what was there before, only why; without a key it may be asked for at any time.
  clear(words, key = "") {
    Object.assign(this, { key, body: null });
    Object.assign(this.stage, { now: null, view: null, held: null });
    this.stage.clear();
    $("#robots").replaceChildren();
    for (const name of [".distance", ".score"]) $(name, $("#phase")).textContent = "";
    $(".fell", $("#phase")).hidden = true;
    this.note(words);
  }

  choose(robot) {
    const network = networkOf(this.policy, robot, this.statistics.get(robot.name));
    if (this.body !== robot.name) this.stage.task(robot, network, this.theta);
    else this.stage.policy(network, this.theta);
    this.body = robot.name;
    $("#robots").replaceChildren(...this.robots.map((one) => {
      const button = make("button", { type: "button", "aria-pressed": String(one === robot) }, taskName(one.name));
      button.addEventListener("click", () => { this.asked = one.name; this.choose(one); });
      return button;
    }));
  }

  frame(passed) {
    const { stage } = this, rests = this.mayRest();
    if (rests !== this.rests) { this.rests = rests; this.note(); }
    if (rests) return;
    if (this.running && stage.now) stage.advance(passed);
    stage.paint();
    stage.tell($("#phase"));
  }
}

function startWatch() {
  unpackModule(JSON.parse($("#data").textContent).module).then((module) => Engine.open(module)).then((engine) => { globalThis.watcher = new Watcher(engine); });
}
