// One phase of training in the tab: the same counters, ranks and sums as training/train.py, so the same bits of θ.
class Trainer {
  // plan: seed, stage, settings, learning (a task), earlier (tasks), method, theta, statistics, memory; see lab/data.
  constructor(engine, crew, policy, plan) {
    Object.assign(this, { engine, crew, policy, plan, theta: plan.theta, generation: 0, steps: 0 });
    this.statistics = new Map(policy.tasks.map((task) => [task.name, plan.statistics.get(task.name)]));
    const { optimizer } = plan.settings;
    this.optimizer = optimizer.name === "adam" ? new Adam(optimizer, policy.size) : new Plain(optimizer);
    this.collected = plan.method.name === "distill" && plan.earlier.length > 0;
  }

  noise(purpose, generation = this.generation + 1) {
    return { seed: this.plan.seed, generation, purpose: this.plan.stage * 256 + purpose };
  }

  words(purpose, index, n, generation = this.generation + 1) {
    const at = this.noise(purpose, generation);
    return this.engine.words(at.seed, at.generation, at.purpose, index, n);
  }

  network(task) { return networkOf(this.policy, task, this.statistics.get(task.name)); }

  batches() {
    const { settings, learning, earlier, method } = this.plan;
    const found = [{ task: learning, n: settings.pairs, weight: 1, replay: false }];
    if (method.name === "replay" && earlier.length) {
      splitEvenly(method.budget / 2, earlier.length).forEach((n, i) => n && found.push({ task: earlier[i], n, weight: method.weight ?? 1, replay: true }));
    }
    let first = 0;
    for (const batch of found) {
      batch.pairs = Uint32Array.from({ length: batch.n }, (_, i) => first + i);
      first += batch.n;
    }
    return found;
  }

  // All rows of a batch, in pieces that the crew shares.
  async simulate({ task, pairs, replay }) {
    const { settings } = this.plan, last = pairs[pairs.length - 1], n = 2 * pairs.length;
    const seeds = this.words(PURPOSE.reset, 0, last + 1).subarray(pairs[0]);
    const ask = {
      sigma: settings.sigma,
      noise: this.noise(PURPOSE.perturbation),
      limit: Math.min(settings.horizon || task.limit, task.limit),
      bonus: settings.healthy_bonus[task.name] ?? 1,
      gather: this.gathers(replay),
    };
    const size = Math.max(2, 2 * Math.ceil(n / this.crew.workers.length / 8)), network = this.network(task), parts = [];
    for (let row = 0; row < n; row += size) {
      const rows = Array.from({ length: Math.min(size, n - row) }, (_, i) => row + i);
      const mine = {
        pair: Uint32Array.from(rows, (r) => pairs[r >> 1]),
        sign: Float32Array.from(rows, (r) => (r % 2 ? -1 : 1)),
        seed: Uint32Array.from(rows, (r) => seeds[r >> 1]),
      };
      parts.push(this.crew.ask({ what: "episodes", robot: task.name, network, theta: this.theta, ask: { ...ask, ...mine } }));
    }
    const done = await Promise.all(parts);
    const joined = (key) => done.flatMap((part) => [...part[key]]);
    return { returns: joined("returns"), lengths: joined("lengths"), sums: ask.gather ? done.map((part) => part.sums) : null };
  }

  gathers(replay) {
    const { policy } = this.plan.settings;
    return policy.normalise && (policy.replay_updates_statistics || !replay);
  }

  async gradient(batch, utilities, members) {
    const weights = Float64Array.from({ length: batch.n }, (_, i) => (utilities[2 * i] - utilities[2 * i + 1]) / (members * this.plan.settings.sigma));
    const { size } = this.policy, share = 4 * Math.ceil(size / this.crew.workers.length / 4), ranges = this.policy.active(batch.task), jobs = [];
    for (let low = 0; low < size; low += share) {
      const mine = ranges.map(([begin, end]) => [Math.max(begin, low), Math.min(end, low + share)]).filter(([begin, end]) => begin < end);
      if (mine.length) jobs.push(this.crew.ask({ what: "gradient", noise: this.noise(PURPOSE.perturbation), pairs: batch.pairs, weights, ranges: mine, size }).then((part) => [mine, part]));
    }
    const gradient = new Float64Array(size);
    for (const [mine, part] of await Promise.all(jobs)) for (const [begin, end] of mine) gradient.set(part.subarray(begin, end), begin);
    return gradient;
  }

  async advance() {
    const began = performance.now(), { size } = this.policy, batches = this.batches();
    const outcomes = await Promise.all(batches.map((batch) => this.simulate(batch)));
    const fitness = outcomes.flatMap((outcome) => outcome.returns), utilities = centredRanks(fitness);
    const total = new Float64Array(size), touched = new Uint8Array(size);
    let row = 0;
    for (const batch of batches) {
      const gradient = await this.gradient(batch, utilities.subarray(row, row + 2 * batch.n), fitness.length);
      row += 2 * batch.n;
      for (let j = 0; j < size; j++) total[j] += batch.weight * gradient[j];
      for (const [begin, end] of this.policy.active(batch.task)) touched.fill(1, begin, end);
    }
    let theta = ascend(this.optimizer, this.theta, total, touched, this.plan.settings.optimizer.weight_decay ?? 0);
    if (this.collected) theta = await this.distil(theta);
    if (!theta.every(Number.isFinite)) throw new Error(`θ left the finite numbers in generation ${this.generation + 1}`);
    batches.forEach((batch, i) => { if (outcomes[i].sums) this.count(batch.task, outcomes[i]); });
    this.theta = theta;
    this.generation += 1;
    const steps = outcomes.reduce((sum, { lengths }) => lengths.reduce((a, b) => a + b, sum), 0);
    this.steps += steps;
    const mine = outcomes[0].returns.filter(Number.isFinite);
    return { generation: this.generation, steps, seconds: (performance.now() - began) / 1000, mean: mine.length ? mine.reduce((a, b) => a + b) / mine.length : null };
  }

  // Observations that training has seen, in row order: Statistics.add in policy/layout.py.
  count(task, { lengths, sums }) {
    const before = this.statistics.get(task.name), n = before.length / 3, added = new Float64Array(3 * n);
    let row = 0;
    for (const part of sums) {
      for (let at = 0; at < part.length; at += 2 * n, row++) {
        for (let i = 0; i < n; i++) added[i] += lengths[row];
        for (let i = 0; i < 2 * n; i++) added[n + i] += part[at + i];
      }
    }
    this.statistics.set(task.name, before.map((value, i) => value + added[i]));
  }

  distil(theta) {
    const { method, earlier, memory } = this.plan;
    const lessons = splitEvenly(method.batch, earlier.length).map((share, i) => {
      const task = earlier[i], { observations, outputs } = memory.get(task.name), network = this.network(task);
      const words = this.words(PURPOSE.distillation, i, method.steps * share), kept = observations.length / Number(network.layers[2]);
      const rows = Array.from({ length: method.steps }, (_, k) => words.subarray(k * share, (k + 1) * share).map((word) => word % kept));
      return { network, observations, outputs, rows };
    });
    return this.crew.ask({ what: "distil", theta, lessons, steps: method.steps, rate: method.learning_rate });
  }

  // Mean returns of the unperturbed policy, on the seeds that the command line evaluates; none where one is not finite.
  async evaluate(episodes) {
    const means = new Map(), none = new Uint32Array(episodes);
    await Promise.all(this.policy.tasks.filter((task) => task.trainable).map(async (task) => {
      const seed = this.engine.words(this.plan.seed, 0, PURPOSE.evaluation, task.index, episodes);
      const ask = { sigma: 0, noise: { seed: this.plan.seed, generation: 0, purpose: PURPOSE.evaluation }, pair: none, sign: new Float32Array(episodes), seed, limit: task.limit };
      const { returns } = await this.crew.ask({ what: "episodes", robot: task.name, network: this.network(task), theta: this.theta, ask });
      means.set(task.name, returns.every(Number.isFinite) ? returns.reduce((a, b) => a + b) / episodes : null);
    }));
    return means;
  }
}

// The layers of θ that a task uses, and what surrounds them; statistics (3, n) give mean and scale once there are any.
function networkOf(policy, task, statistics) {
  const network = policy.networks.get(task.name);
  if (!policy.normalise || !statistics || statistics[0] === 0) return { ...network, mean: null, scale: null };
  const n = statistics.length / 3, mean = new Float64Array(n), scale = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    mean[i] = statistics[n + i] / statistics[i];
    scale[i] = 1 / Math.sqrt(Math.max(statistics[2 * n + i] / statistics[i] - mean[i] * mean[i], 1e-6));
  }
  return { ...network, mean, scale };
}

// The policy before training: uniform ±1/√n_in, each layer by its name's own counter.
function initialTheta(engine, policy, seed) {
  const theta = new Float32Array(policy.size), f = Math.fround;
  for (const { offset, end, inputs, index } of policy.layers) {
    const root = f(Math.sqrt(inputs));
    engine.words(seed, 0, PURPOSE.initial, index, end - offset).forEach((word, i) => { theta[offset + i] = f(f(2 * ((word >>> 8) * 2 ** -24) - 1) / root); });
  }
  return theta;
}

// A crew of Web Workers, each with an engine of its own; requests wait in one queue.
class Crew {
  static async hire(module, robots, n = Crew.size) {
    const crew = new Crew(n);
    await crew.all({ module });
    await crew.all({ what: "robots", robots });
    return crew;
  }

  static get size() { return clamp(navigator.hardwareConcurrency || 2, 1, 8); }

  constructor(n) {
    const source = URL.createObjectURL(new Blob([$("#worker").textContent], { type: "text/javascript" }));
    this.idle = Array.from({ length: n }, () => new Worker(source));
    this.workers = [...this.idle];
    this.queue = [];
    this.waiting = new Map();
    this.next = 0;
    this.workers.forEach((worker) => { worker.onmessage = ({ data }) => this.finish(worker, data); });
  }

  all(request) { return Promise.all(this.workers.map((worker) => new Promise((resolve, reject) => {
    const id = this.next++;
    this.waiting.set(id, { resolve, reject, keep: true });
    worker.postMessage({ id, ...request });
  }))); }

  ask(request) {
    return new Promise((resolve, reject) => { this.queue.push({ request, resolve, reject }); this.hand(); });
  }

  hand() {
    while (this.idle.length && this.queue.length) {
      const worker = this.idle.pop(), { request, resolve, reject } = this.queue.shift(), id = this.next++;
      this.waiting.set(id, { resolve, reject });
      worker.postMessage({ id, ...request });
    }
  }

  finish(worker, { id, answer, error }) {
    const { resolve, reject, keep } = this.waiting.get(id);
    this.waiting.delete(id);
    if (!keep) this.idle.push(worker);
    if (error) reject(new Error(error)); else resolve(answer);
    this.hand();
  }

  dismiss() { this.workers.forEach((worker) => worker.terminate()); }
}
