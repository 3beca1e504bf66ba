// What tests call in the bare page: arrays come and go as base64.
const send = (a) => btoa(Array.from(new Uint8Array(a.buffer, a.byteOffset, a.byteLength), (b) => String.fromCharCode(b)).join(""));
const numbers = (n, of) => Array.from({ length: n }, (_, i) => of(i));

const calls = {
  words: (engine, { seed, generation, purpose, index, n }) => send(engine.words(seed, generation, purpose, index, n)),

  resets: (engine, { robot, seeds }) => {
    const { position, velocity } = engine.resets(unpackRobot(robot), Uint32Array.from(seeds));
    return [send(position), send(velocity)];
  },

  // 64 candidates in mirrored pairs, 200 steps at most.
  episodes: (engine, { robot, policy, theta, mean, scale }) => {
    const task = unpackRobot(robot), own = unpackPolicy(policy, [task]).networks.get(task.name);
    const network = { ...own, mean: mean && doubles(mean), scale: scale && doubles(scale) };
    const out = engine.episodes(task, network, floats(theta), {
      sigma: 0.1, noise: { seed: 11, generation: 4, purpose: 256 }, bonus: 0.5, gather: true, limit: Math.min(200, task.limit),
      pair: Uint32Array.from(numbers(64, (i) => i >> 1)), sign: Float32Array.from(numbers(64, (i) => (i % 2 ? -1 : 1))), seed: Uint32Array.from(numbers(64, (i) => i + 100)),
    });
    return { returns: send(out.returns), lengths: send(out.lengths), diverged: send(out.diverged), sums: send(out.sums) };
  },

  initial: (engine, { policy, seed }) => send(initialTheta(engine, unpackPolicy(policy, []), seed)),
  unbiased: (_, { bases, n }) => bases.map((base) => numbers(n, (i) => 1 - power(base, i + 1))),
  ranks: (_, { fitness }) => send(centredRanks(fitness.map((value) => value ?? NaN))),

  // A robot step by step until it falls, in a world that may be changed, with a pull that may hold it.
  live: (engine, { robot, policy, theta, seed, world = {}, pull = null, limit = Infinity }) => {
    const task = unpackRobot(robot), network = unpackPolicy(policy, [task]).networks.get(task.name), n = Number(network.layers[2]);
    const live = new LiveRobot(engine, task, { ...network, mean: new Float64Array(n), scale: new Float64Array(n).fill(1) }, floats(theta));
    live.world(world);
    live.hand(pull);
    let now = live.reset(engine.resets(task, Uint32Array.of(seed)));
    const path = [...now.position];
    while (now.healthy && now.steps < Math.min(limit, task.limit)) {
      now = live.step(1);
      path.push(...now.position);
    }
    live.close();
    return { path: send(Float64Array.from(path)), total: now.total, steps: now.steps };
  },

  train: async (engine, { data, number, stage, learning, method, generations }, module) => {
    const robots = data.robots.map(unpackRobot), policies = data.policies.map((policy) => unpackPolicy(policy, robots));
    const run = unpackRun(data.runs[number], { ...data, policies, thetas: data.thetas.map(floats) }, engine), task = (name) => robots.find((robot) => robot.name === name);
    const start = stage ? run.moments.find((moment) => moment.end && moment.stage === stage - 1) : run.moments[0];
    const memory = run.memory.find((one) => one.stage === stage - 1)?.memory, crew = await Crew.hire(module, robots, 3);
    const earlier = run.stream.slice(0, stage).map(task), { theta, statistics } = start;
    const trainer = new Trainer(engine, crew, run.policy, { seed: run.seed, stage, settings: run.config, learning: task(learning), earlier, method, theta, statistics, memory });
    const hashes = [];
    while (trainer.generation < generations) {
      await trainer.advance();
      hashes.push(sha256(trainer.theta));
    }
    const means = Object.fromEntries(await trainer.evaluate(run.config.evaluation.episodes));
    crew.dismiss();
    return { hashes, means };
  },
};
