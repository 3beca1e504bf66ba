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
