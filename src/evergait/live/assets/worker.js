// A worker: answers one request at a time with the engine. Whoever asks does not see which worker it was.
let engine = null;
const known = new Map();

const answers = {
  robots: ({ robots }) => { robots.forEach((robot) => known.set(robot.name, robot)); },
  episodes: ({ robot, network, theta, ask }) => engine.episodes(known.get(robot), network, theta, ask),
  gradient: ({ noise, pairs, weights, ranges, size }) => engine.gradient(noise, pairs, weights, ranges, size),
  distil: ({ theta, lessons, steps, rate }) => distilled(engine, theta, lessons, steps, rate),
};

onmessage = async ({ data: { id, what, module, ...rest } }) => {
  try {
    if (module) engine = await Engine.open(module);
    postMessage({ id, answer: what ? answers[what](rest) : null });
  } catch (error) {
    postMessage({ id, error: String(error) });
  }
};
