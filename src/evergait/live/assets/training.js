// Training in the tab: choose, watch curves and gait move generation by generation, then drag back.
const METHODS = {
  naive: () => ({ name: "naive" }),
  replay: (config) => ({ name: "replay", budget: 2 * Math.max(1, Math.round(config.pairs / 4)), weight: 1 }),
  distill: (_, taught) => taught?.method,
};
const NOTHING = "nothing";

class Training {
  constructor(lab) {
    Object.assign(this, { lab, crew: null, wanted: false, busy: false });
    for (const name of ["#from", "#next", "#method"]) $(name).addEventListener("change", () => this.offer(name));
    $("#training").addEventListener("submit", (event) => { event.preventDefault(); this.train(); });
    $("#stop").addEventListener("click", () => { this.wanted = false; });
    lab.sides[0].pick.addEventListener("change", () => this.offer());
    this.offer();
  }

  get run() { return this.lab.sides[0].run; }

  // Where to go on from: the ends of the left run's phases.
  offer(changed = "") {
    const { run } = this, ends = run.moments.filter((moment) => moment.end), base = run.trainedHere ? run.base : run;
    const keep = (select, options, wanted) => {
      select.replaceChildren(...options.map(([value, text]) => make("option", { value }, text)));
      if (options.some(([value]) => String(value) === wanted)) select.value = wanted;
      else if (options.length) select.value = options[options.length - 1][0];
    };
    if (changed === "") keep($("#from"), [[NOTHING, "nothing: an untrained policy"], ...ends.map((moment) => [moment.stage, moment.label])], ends.length ? String(ends[0].stage) : NOTHING);
    const stage = this.stage(), learnt = run.stream.slice(0, stage);
    const tasks = run.policy.tasks.filter((task) => task.trainable).map((task) => [task.name, task.name.replace("-v5", "")]);
    const fresh = tasks.find(([name]) => !learnt.includes(name)) ?? tasks[0];
    if (changed !== "#next" && changed !== "#method") keep($("#next"), tasks, fresh?.[0]);
    const methods = Object.keys(METHODS).filter((name) => name === "naive" || (learnt.some((name) => name !== $("#next").value) && (name !== "distill" || this.taught())));
    if (changed !== "#method") keep($("#method"), methods.map((name) => [name, name]), methods.includes(base.config.method.name) ? base.config.method.name : "naive");
    const known = this.known({ run, stage, learning: { name: $("#next").value }, method: METHODS[$("#method").value](run.config, this.taught()), theta: this.start(stage).theta });
    $("#generations").value = known.map((moment) => moment.generation).filter((generation) => generation <= 120)[0] ?? 24;
    const why = base.cannotTrain || (tasks.length ? "" : "no robot of this page has resets that a page can draw");
    $("#why").textContent = why ? `Not possible for this run: ${why}.` : "";
    $("#train").disabled = Boolean(why) || this.busy;
  }

  start(stage) { return stage ? this.run.moments.find((moment) => moment.end && moment.stage === stage - 1) : this.run.moments[0]; }
  stage() { return $("#from").value === NOTHING ? 0 : Number($("#from").value) + 1; }
  taught() { return this.run.memory.find((one) => one.stage === this.stage() - 1); }

  plan() {
    const { run } = this, { config } = run, stage = this.stage(), learning = run.policy.tasks.find((task) => task.name === $("#next").value);
    const start = this.start(stage);
    const learnt = [...new Set(run.stream.slice(0, stage))].filter((name) => name !== learning.name);
    const earlier = learnt.map((name) => run.policy.tasks.find((task) => task.name === name)), method = METHODS[$("#method").value](config, this.taught());
    return { run, seed: run.seed, stage, settings: config, learning, earlier, method, theta: start.theta, statistics: start.statistics, memory: this.taught()?.memory };
  }

  // A run of its own: what was there up to the start, and what comes now.
  newRun(plan) {
    const { run, lab } = this, { stage, learning, method } = plan, kept = run.moments.filter((moment) => moment.stage < stage || moment.generation === 0);
    const stream = [...run.stream.slice(0, stage), learning.name];
    const made = {
      ...run, stream, moments: kept, curves: [...run.curves.slice(0, stage), { generations: [], times: [], returns: Object.fromEntries(run.policy.tasks.map((task) => [task.name, []])) }],
      memory: run.memory.filter((one) => one.stage < stage), condition: `trained here, ${method.name}`, order: stream.map((name) => name.replace("-v5", "")).join(" > "),
      trainedHere: true, base: run.trainedHere ? run.base : run, config: { ...run.config, method },
      followed: !run.trainedHere && (stage < 2 || JSON.stringify(run.config.method) === JSON.stringify(method)),
    };
    lab.data.runs.push(made);
    lab.offer();
    lab.sides[0].choose(lab.data.runs.length - 1);
    return made;
  }

  async train() {
    if (this.busy) return;
    const plan = this.plan(), generations = clamp(Math.round(Number($("#generations").value)) || 1, 1, 2000), { lab } = this;
    const run = this.newRun(plan), curve = run.curves[plan.stage];
    this.toggle(true);
    $("#by-command").hidden = true;
    lab.task = plan.learning;
    lab.press();
    try {
      this.crew ??= await Crew.hire(lab.data.module, lab.data.robots);
      const trainer = new Trainer(lab.data.engine, this.crew, run.policy, plan), every = Math.max(1, Math.round(generations / 24));
      await this.note(trainer, run, curve, generations, null);
      while (this.wanted && trainer.generation < generations) {
        const done = await trainer.advance();
        await this.note(trainer, run, curve, generations, done, trainer.generation % every === 0 || trainer.generation === generations);
      }
      if (trainer.generation) Object.assign(run.moments[run.moments.length - 1], { end: true, label: `after ${plan.learning.name.replace("-v5", "")}, trained here` });
      this.command(run, plan, trainer.generation);
      lab.seek(lab.time);
    } catch (error) {
      $("#news").textContent = `Training stopped: ${error.message}`;
    }
    this.toggle(false);
    this.offer();
  }

  // How the command line trains the same: all its phases are as long as the last one, which may have been stopped.
  command(run, plan, generations) {
    const { config } = run;
    $("#by-command").hidden = !run.followed || !generations || Boolean(plan.stage && (config.steps || config.generations !== generations));
    $("#toml").textContent = toToml(commandConfig(run, plan, generations));
  }

  async note(trainer, run, curve, generations, done, evaluate = true) {
    const { lab } = this, { plan } = trainer, time = plan.stage + trainer.generation / generations, follows = lab.time >= lab.end - 1 - 1e-9;
    const means = evaluate ? await trainer.evaluate(run.config.evaluation.episodes) : new Map();
    if (evaluate) {
      curve.generations.push(trainer.generation);
      curve.times.push(time);
      for (const [task, mean] of means) curve.returns[task].push(mean);
    }
    const hash = sha256(trainer.theta);
    if (done) run.moments.push({
      stage: plan.stage, generation: trainer.generation, end: false, label: `${plan.learning.name.replace("-v5", "")}, generation ${trainer.generation}, trained here`,
      theta: trainer.theta, statistics: new Map(trainer.statistics), tasks: run.policy.tasks.map((task) => task.name), returns: Object.fromEntries(means), time, sha256: hash,
    });
    if (done) this.tell(trainer, done, means, generations);
    this.compare(trainer, run, hash);
    if (follows) lab.seek(time); else lab.draw();
  }

  tell(trainer, done, means, generations) {
    const { learning } = trainer.plan, mean = means.get(learning.name);
    this.spent = (this.spent ?? 0) + done.seconds;
    $("#progress").value = trainer.generation / generations;
    const known = (number) => (isNumber(number) ? format(number, 0) : "undefined"), value = mean === undefined ? `population's mean ${known(done.mean)}` : `return ${known(mean)}`;
    const pace = `${format(done.steps / done.seconds / 1000, 0)} thousand steps/s on ${this.crew.workers.length} workers`;
    $("#news").textContent = `Generation ${trainer.generation} of ${generations}: ${value}, ${pace}, ${format(this.spent, 1)} s.`;
  }

  // What the command line trained from the same beginning, on the same task, with the same settings, as far as this file has it.
  known(plan) {
    const { run } = plan, settings = settingsOf(run.config), same = (other) => !other.trainedHere && other.policy === run.policy && settingsOf(other.config) === settings
      && other.stream[plan.stage] === plan.learning.name && this.begins(other, plan) && (!plan.stage || methodOf(other.config.method) === methodOf(plan.method));
    return this.lab.data.runs.filter(same).flatMap((other) => other.moments).filter((moment) => moment.stage === plan.stage && moment.sha256);
  }

  compare(trainer, run, hash) {
    const known = this.known(trainer.plan).find((moment) => moment.generation === trainer.generation);
    $("#here").textContent = hash;
    if (known) {
      $("#there").textContent = known.sha256;
      $("#verdict").textContent = known.sha256 === hash ? `equal, after ${trainer.generation} generations` : `DIFFERENT after ${trainer.generation} generations`;
      run.compared = true;
    } else if (!run.compared) {
      $("#there").textContent = "not known to this file at this generation";
      $("#verdict").textContent = "";
    }
  }

  begins(other, plan) {
    if (!plan.stage) return true;
    return other.moments.some((moment) => moment.end && moment.stage === plan.stage - 1 && moment.theta === plan.theta);
  }

  toggle(on) {
    this.wanted = this.busy = on;
    this.spent = 0;
    $("#train").disabled = on;
    $("#stop").hidden = !on;
    $("#progress").hidden = !on;
  }
}

// The settings that decide every generation's bits, the seed among them; a stage's own task and method are compared apart.
function settingsOf({ stream, tasks, method, generations, steps, evaluation, ...rest }) { return JSON.stringify(rest); }

// What decides a method's bits, in one order.
const methodOf = (method) => JSON.stringify(Object.entries(method.name === "replay" ? { name: "replay", budget: method.budget, weight: method.weight ?? 1 } : method).sort());

// The config that trains the same on the command line: generations in place of steps.
function commandConfig(run, plan, generations) {
  const { stream } = run, names = run.policy.tasks.map((task) => task.name), { config } = run;
  const evaluation = { ...config.evaluation, every_steps: 0 };
  return { ...config, stream, tasks: names.filter((name) => !stream.includes(name)), generations, method: plan.method, steps: 0, evaluation };
}

function toToml(table, path = []) {
  const key = (name) => (/^[A-Za-z0-9_-]+$/.test(name) ? name : JSON.stringify(name));
  const isTable = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
  const text = (value) => (Array.isArray(value) ? `[${value.map(text).join(", ")}]` : JSON.stringify(value));
  const lines = Object.entries(table).filter(([, value]) => !isTable(value) && value !== null).map(([name, value]) => `${key(name)} = ${text(value)}`);
  const tables = Object.entries(table).filter(([, value]) => isTable(value) && Object.keys(value).length);
  const parts = tables.map(([name, value]) => `\n[${[...path, name].map(key).join(".")}]\n${toToml(value, [...path, name])}`);
  return [...lines, ...parts].join("\n");
}
