// Evolution strategies as the package computes them, operation by operation: es.py.

// Below every finite number that survived, by one unit in the last place.
function below(value) {
  const bits = new BigInt64Array(1), number = new Float64Array(bits.buffer);
  number[0] = value;
  if (value === 0) return -Number.MIN_VALUE;
  bits[0] += value > 0 ? -1n : 1n;
  return number[0];
}

// Ranks in [−½, ½]; ties share the mean of theirs, and what diverged ranks last.
function centredRanks(fitness) {
  const n = fitness.length, finite = fitness.filter(Number.isFinite), ranks = new Float64Array(n);
  if (!finite.length || n < 2) return ranks;
  const worst = below(finite.reduce((a, b) => Math.min(a, b)));
  const values = Float64Array.from(fitness, (value) => (Number.isFinite(value) ? value : worst));
  const order = Array.from(values.keys()).sort((a, b) => values[a] - values[b]);
  for (let i = 0; i < n; ) {
    let end = i + 1;
    while (end < n && values[order[end]] === values[order[i]]) end++;
    for (let k = i; k < end; k++) ranks[order[k]] = (i + (end - i - 1) / 2) / (n - 1) - 0.5;
    i = end;
  }
  return ranks;
}

// base ** n, rounded once: products as unevaluated sums of two numbers (Dekker 1971).
function power(base, n) {
  let high = 1, low = 0;
  const split = (a) => { const c = 134217729 * a, big = c - (c - a); return [big, a - big]; };
  const product = (a, b) => {
    const p = a * b, [ah, al] = split(a), [bh, bl] = split(b);
    return [p, ((ah * bh - p) + ah * bl + al * bh) + al * bl];
  };
  for (let i = 0; i < n; i++) {
    const [p, error] = product(high, base), rest = error + low * base;
    high = p + rest;
    low = rest - (high - p);
  }
  return high;
}

class Adam {
  constructor({ learning_rate, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8 }, size) {
    Object.assign(this, { rate: learning_rate, beta1, beta2, epsilon, steps: 0 });
    this.first = new Float64Array(size);
    this.second = new Float64Array(size);
  }

  begin() {
    this.steps += 1;
    this.scale1 = 1 - power(this.beta1, this.steps);
    this.scale2 = 1 - power(this.beta2, this.steps);
  }

  step(i, g) {
    this.first[i] = this.beta1 * this.first[i] + (1 - this.beta1) * g;
    this.second[i] = this.beta2 * this.second[i] + (1 - this.beta2) * (g * g);
    return (this.rate * (this.first[i] / this.scale1)) / (Math.sqrt(this.second[i] / this.scale2) + this.epsilon);
  }
}

class Plain {
  constructor({ learning_rate }) { this.rate = learning_rate; }
  begin() {}
  step(_, g) { return this.rate * g; }
}

// θ after one ascent on the touched parameters, in float64 and rounded once.
function ascend(optimizer, theta, gradient, touched, decay) {
  const after = theta.slice();
  optimizer.begin();
  for (let i = 0; i < theta.length; i++) if (touched[i]) after[i] = (1 - decay) * theta[i] + optimizer.step(i, gradient[i]);
  return after;
}

const splitEvenly = (total, parts) => Array.from({ length: parts }, (_, i) => Math.floor(total / parts) + (i < total % parts ? 1 : 0));

const ROUNDING = 1e-7;

// Adam steps towards what the policy did where it left each task: methods/distill.py. `lessons` hold a network, its
// observations and outputs, and the rows of every step.
function distilled(engine, theta, lessons, steps, rate) {
  const moved = Float64Array.from(theta), adam = new Adam({ learning_rate: rate }, moved.length);
  for (let number = 0; number < steps; number++) {
    let gradient = new Float64Array(moved.length);
    for (const { network, observations, outputs, rows } of lessons)
      gradient = engine.approach(network, moved, observations, outputs, rows[number], ROUNDING, gradient);
    adam.begin();
    for (let j = 0; j < moved.length; j++) moved[j] += adam.step(j, gradient[j]);
  }
  return Float32Array.from(moved);
}
