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

// SHA-256 (FIPS 180-4), so that the page can name a θ as `evergait show` does; a file has no crypto.subtle everywhere.
const SHA256 = (() => {
  const primes = [];
  for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p)) primes.push(n);
  const part = (x) => Math.floor((x - Math.floor(x)) * 2 ** 32) >>> 0;
  return { start: primes.slice(0, 8).map((p) => part(Math.sqrt(p))), round: primes.map((p) => part(Math.cbrt(p))) };
})();

function sha256(array) {
  const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength), n = bytes.length;
  const padded = new Uint8Array(Math.ceil((n + 9) / 64) * 64), view = new DataView(padded.buffer), h = [...SHA256.start], w = new Uint32Array(64);
  padded.set(bytes);
  padded[n] = 128;
  view.setUint32(padded.length - 8, Math.floor(n / 2 ** 29));
  view.setUint32(padded.length - 4, (n * 8) >>> 0);
  const turn = (x, k) => (x >>> k) | (x << (32 - k));
  for (let at = 0; at < padded.length; at += 64) {
    for (let i = 0; i < 16; i++) w[i] = view.getUint32(at + 4 * i);
    for (let i = 16; i < 64; i++) {
      const a = w[i - 15], b = w[i - 2];
      w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ (a >>> 3)) + w[i - 7] + (turn(b, 17) ^ turn(b, 19) ^ (b >>> 10));
    }
    let [a, b, c, d, e, f, g, k] = h;
    for (let i = 0; i < 64; i++) {
      const one = (k + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + SHA256.round[i] + w[i]) | 0;
      const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [k, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
    }
    [a, b, c, d, e, f, g, k].forEach((x, i) => { h[i] = (h[i] + x) | 0; });
  }
  return h.map((x) => (x >>> 0).toString(16).padStart(8, "0")).join("");
}
