// The engine: the native core as WebAssembly, called with plain typed arrays. Used by the page and by its workers.
const PURPOSE = { perturbation: 0, reset: 1, initial: 2, evaluation: 3, observation: 4, distillation: 10 };  // core/random.py

class Engine {
  static async open(module) {
    const instance = await WebAssembly.instantiate(module, {});
    return new Engine(instance.exports);
  }

  constructor(exports) {
    this.core = exports;
    this.owned = [];
    this.tasks = new Map();
  }

  // Copies an array into the module's memory; `scope` frees what was put within it.
  put(array) {
    if (!array) return 0;
    const address = this.room(array.byteLength);
    new Uint8Array(this.core.memory.buffer, address, array.byteLength).set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
    return address;
  }

  room(bytes) {
    const address = this.core.get_memory(Math.max(bytes, 1));
    this.owned.push(address);
    return address;
  }

  zeros(Type, n) { return this.put(new Type(n)); }
  read(Type, address, n) { return new Type(this.core.memory.buffer, address, n).slice(); }

  scope(work) {
    const before = this.owned;
    this.owned = [];
    try {
      return work();
    } finally {
      this.owned.forEach((address) => this.core.free_memory(address));
      this.owned = before;
    }
  }

  words(seed, generation, purpose, index, n) {
    return this.scope(() => {
      const out = this.room(4 * n);
      this.core.words(BigInt(seed), generation, purpose, index, n, out);
      return this.read(Uint32Array, out, n);
    });
  }

  // Initial states as Gymnasium draws them, (n, n_dofs) each.
  resets(robot, seeds) {
    const n = seeds.length, size = n * robot.dofs;
    return this.scope(() => {
      const position = this.room(8 * size), velocity = this.room(8 * size);
      this.core.draw_resets(this.put(seeds), n, robot.dofs, robot.resetNoise, this.put(robot.nominal), position, velocity);
      return { position: this.read(Float64Array, position, size), velocity: this.read(Float64Array, velocity, size) };
    });
  }

  // A robot and its rules, read and checked once.
  task(robot) {
    if (!this.tasks.has(robot)) {
      const handle = this.scope(() => this.core.task_open(this.put(robot.description), robot.description.length, this.put(robot.rules), robot.rules.length));
      if (!handle) throw new Error(`${robot.name} is not a robot that this engine knows`);
      this.tasks.set(robot, handle);
    }
    return this.tasks.get(robot);
  }

  // Whole episodes, one per row: see Episodes in engines/base.py.
  episodes(robot, network, theta, ask) {
    const n = ask.seed.length, task = this.task(robot);
    const start = ask.start ?? this.resets(robot, ask.seed), seen = Number(network.layers[2]);
    return this.scope(() => {
      const returns = this.room(8 * n), lengths = this.room(4 * n), diverged = this.room(n);
      const sums = ask.gather ? this.zeros(Float64Array, 2 * n * seen) : 0;
      this.core.episodes(
        task, ask.bonus ?? 1, ...this.network(network), this.put(theta), ask.sigma, BigInt(ask.noise.seed), ask.noise.generation,
        ask.noise.purpose, this.put(ask.pair), this.put(ask.sign), this.put(ask.seed), PURPOSE.observation, this.put(start.position), this.put(start.velocity),
        n, ask.limit, returns, lengths, diverged, sums,
      );
      return {
        returns: this.read(Float64Array, returns, n),
        lengths: this.read(Int32Array, lengths, n),
        diverged: this.read(Uint8Array, diverged, n),
        sums: sums ? this.read(Float64Array, sums, 2 * n * seen) : null,
      };
    });
  }

  network({ layers, mean, scale, middle, halfRange }) {
    return [this.put(layers), layers.length / 5, this.put(mean), this.put(scale), this.put(middle), this.put(halfRange)];
  }

  // Σ weights[p] ε_p over pairs in order, for the parameters of some ranges.
  gradient(noise, pairs, weights, ranges, size) {
    return this.scope(() => {
      const out = this.zeros(Float64Array, size), numbers = this.put(pairs), factors = this.put(weights);
      for (const [begin, end] of ranges) this.core.accumulate(BigInt(noise.seed), noise.generation, noise.purpose, numbers, factors, pairs.length, begin, end, out);
      return this.read(Float64Array, out, size);
    });
  }

  // The gradient, with the slope towards these rows' targets added: Network.approach in policy/network.py.
  approach({ layers, mean, scale }, theta, observations, targets, rows, least, gradient) {
    return this.scope(() => {
      const sum = this.put(gradient);
      this.core.approach(this.put(layers), layers.length / 5, this.put(mean), this.put(scale), this.put(theta), theta.length,
        this.put(observations), this.put(targets), this.put(rows), rows.length, least, sum);
      return this.read(Float64Array, sum, theta.length);
    });
  }
}

// A robot that lives: one environment step after another, in a world that can be changed, with a hand that may hold it.
class LiveRobot {
  constructor(engine, robot, network, theta) {
    Object.assign(this, { engine, robot, inputs: network.layers[2] });
    this.kept = [];
    engine.owned = this.kept;
    const surround = engine.network(network);
    [this.mean, this.scale] = [surround[2], surround[3]];
    this.handle = engine.core.live_open(engine.task(robot), ...surround);
    this.out = engine.room(8 * (5 * robot.dofs + 4));
    this.state = engine.room(16 * robot.dofs);
    this.theta = engine.room(theta.byteLength);
    engine.owned = [];
    this.policy(theta);
    this.world({});
    this.hand(null);
  }

  policy(theta) {
    new Float32Array(this.engine.core.memory.buffer, this.theta, theta.length).set(theta);
    this.engine.core.live_policy(this.handle, this.theta);
  }

  // For a robot that was opened with a mean and a scale; none stand for zero and one, which change no bit.
  normalise(mean, scale) {
    const n = Number(this.inputs), memory = this.engine.core.memory.buffer;
    new Float64Array(memory, this.mean, n).set(mean ?? new Float64Array(n));
    new Float64Array(memory, this.scale, n).set(scale ?? new Float64Array(n).fill(1));
  }

  world({ gravity = 1, friction = 1, mass = 1, size = 1, strength = 1 }) {
    this.engine.core.live_world(this.handle, gravity, friction, mass, size, strength);
  }

  reset({ position, velocity }, seed = 0) {
    const at = new Float64Array(this.engine.core.memory.buffer, this.state, 2 * this.robot.dofs);
    at.set(position);
    at.set(velocity, this.robot.dofs);
    this.engine.core.live_reset(this.handle, this.state, this.state + 8 * this.robot.dofs, seed, PURPOSE.observation);
    return this.step(0);
  }

  // Holds a point of a link (in its frame) towards a point of the world, or lets go.
  hand(held) {
    const { dof, x, z, targetX, targetZ, stiffness, damping } = held ?? { dof: -1, x: 0, z: 0, targetX: 0, targetZ: 0, stiffness: 0, damping: 0 };
    this.engine.core.live_hand(this.handle, dof, x, z, targetX, targetZ, stiffness, damping);
  }

  step(n) {
    this.engine.core.live_step(this.handle, n, this.out);
    const d = this.robot.dofs, out = this.engine.read(Float64Array, this.out, 5 * d + 4);
    const [total, steps, healthy, finite] = out.subarray(5 * d);
    return { places: out.subarray(0, 3 * d), position: out.subarray(3 * d, 4 * d), velocity: out.subarray(4 * d, 5 * d), total, steps, healthy: !!healthy, finite: !!finite };
  }

  close() {
    this.engine.core.live_close(this.handle);
    this.kept.forEach((address) => this.engine.core.free_memory(address));
  }
}
