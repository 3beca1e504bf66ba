// From the page's plain data to typed arrays: the module, robots, policies and moments.
const bytesOf = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const floats = (text) => new Float32Array(bytesOf(text).buffer);
const doubles = (text) => new Float64Array(bytesOf(text).buffer);

async function unpackModule(text) {
  const packed = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compile(await new Response(packed).arrayBuffer());
}

function unpackRobot(data) {
  const { dofs } = data, position = doubles(data.resets.position), velocity = doubles(data.resets.velocity);
  const resets = Array.from({ length: position.length / dofs }, (_, i) => ({
    position: position.subarray(i * dofs, (i + 1) * dofs), velocity: velocity.subarray(i * dofs, (i + 1) * dofs),
  }));
  return { ...data, description: doubles(data.description), rules: doubles(data.rules), nominal: doubles(data.nominal), resets };
}

function unpackPolicy(data, robots) {
  const networks = new Map(), active = new Map();
  for (const [name, network] of Object.entries(data.networks)) {
    networks.set(name, { layers: BigInt64Array.from(network.layers, BigInt), middle: floats(network.middle), halfRange: floats(network.halfRange) });
    active.set(name, network.active);
  }
  const tasks = robots.filter((robot) => networks.has(robot.name));
  const layers = data.layers.map(([offset, end, inputs, index]) => ({ offset, end, inputs, index }));
  return { size: data.size, normalise: data.normalise, networks, tasks, layers, active: (task) => active.get(task.name) };
}

function unpackRun(run, data, engine) {
  const policy = data.policies[run.policy], empty = new Map(policy.tasks.map((task) => [task.name, new Float64Array(3 * Number(policy.networks.get(task.name).layers[2]))]));
  const last = run.curves.map((curve) => curve.generations[curve.generations.length - 1]);
  const moments = run.moments.map((moment) => ({
    ...moment,
    time: moment.stage + moment.generation / last[moment.stage],
    theta: moment.theta === null ? initialTheta(engine, policy, run.seed) : data.thetas[moment.theta],
    statistics: moment.statistics ? new Map(Object.entries(moment.statistics).map(([name, sums]) => [name, doubles(sums)])) : empty,
  }));
  const memory = run.memory.map((one) => ({
    ...one, memory: new Map(Object.entries(one.memory).map(([name, [seen, outputs]]) => [name, { observations: floats(seen), outputs: floats(outputs) }])),
  }));
  const curves = run.curves.map((curve, stage) => ({ ...curve, times: curve.generations.map((g) => stage + g / last[stage]) }));
  return { ...run, policy, moments, memory, curves, empty };
}

async function unpack(data) {
  const module = await unpackModule(data.module), engine = await Engine.open(module);
  const robots = data.robots.map(unpackRobot), policies = data.policies.map((policy) => unpackPolicy(policy, robots));
  const whole = { ...data, robots, policies, thetas: data.thetas.map(floats) };
  return { ...whole, module, engine, runs: data.runs.map((run) => unpackRun(run, whole, engine)) };
}
