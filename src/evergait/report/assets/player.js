// The gait player: two stages on one clock. Watch a policy right after it has learnt a task, beside the same one later.
class Side {
  constructor(root, player) {
    Object.assign(this, { root, player, gait: null });
    this.stage = new Stage($("canvas", root));
    this.condition = $(".pick-condition", root);
    this.order = $(".pick-order", root);
    this.moment = $(".pick-moment", root);
    this.condition.addEventListener("change", () => { player.chosen = true; this.fillOrders(); this.choose(); });
    this.order.addEventListener("change", () => { player.chosen = true; this.choose(); });
    this.moment.addEventListener("change", () => this.load());
    fill(this.condition, [...new Set(player.data.shelves.map((shelf) => shelf.condition))].map((name) => [name, name]));
    this.fillOrders();
  }

  get shelf() { return this.player.data.shelves[Number(this.order.value)]; }

  fillOrders(wanted) {
    const { shelves } = this.player.data;
    const mine = shelves.map((shelf, i) => [i, shelf.order]).filter(([i]) => shelves[i].condition === this.condition.value);
    const before = wanted ?? this.shelfOrder;
    fill(this.order, mine, mine.find(([, order]) => order === before)?.[0]);
    this.shelfOrder = this.shelf.order;
  }

  show(shelfIndex) {
    const shelf = this.player.data.shelves[shelfIndex];
    this.condition.value = shelf.condition;
    this.fillOrders(shelf.order);
  }

  // Offer the moments of the shelf, and take the one of the same kind as before: right after learning, or the end.
  choose() {
    const task = this.player.task, shelf = this.shelf;
    this.shelfOrder = shelf.order;
    const offered = shelf.moments.map((moment, i) => [i, moment.label]).filter(([i]) => task in shelf.moments[i].gaits);
    fill(this.moment, offered, this.root.dataset.side === "0" ? afterLearning(shelf, task) : lastOf(shelf, task));
    this.load();
  }

  load() {
    const moment = this.shelf.moments[Number(this.moment.value)], index = moment?.gaits[this.player.task];
    this.gait = index === undefined ? null : this.player.gait(index);
    if (!this.gait) return;
    const { record } = this.gait, name = this.player.data.tasks[this.player.task];
    const text = `${name}, ${this.shelf.condition}, ${moment.label}: ${this.gait.outcome()}, return ${format(record.return, 0)}`;
    this.stage.canvas.setAttribute("aria-label", text);
    $(".outcome", this.root).textContent = `${this.gait.outcome()} \u00b7 return ${format(record.return, 0)}`;
    $(".episode", this.root).textContent = `seed ${this.shelf.seed}, evaluation episode ${record.episode + 1} (the median one)`;
    this.player.changed();
    this.root.dispatchEvent(new Event("loaded"));
  }

  draw(seconds) {
    this.stage.draw(this.gait, seconds, this.player.task);
    if (!this.gait) return;
    const frame = this.gait.frameAt(seconds), over = seconds >= this.gait.duration - 1e-6;
    // Seen obliquely, a way looks shorter than it is: no number is better than a wrong one.
    $(".distance", this.root).textContent = this.gait.robot.planar ? `${format(this.gait.distance(frame), 1)} m` : "";
    $(".score", this.root).textContent = `return ${format(this.gait.score[Math.round(frame)], 0)}`;
    $(".fell", this.root).hidden = !(over && this.gait.fell(seconds));
  }
}

function fill(select, pairs, chosen) {
  select.replaceChildren(...pairs.map(([value, text]) => make("option", { value }, text)));
  if (chosen !== undefined) select.value = chosen;
  select.closest("label")?.classList.toggle("only-one", pairs.length < 2);
}

function afterLearning(shelf, task) {
  const found = shelf.moments.findIndex((moment) => moment.learnt.includes(Number(task)) && task in moment.gaits);
  return found < 0 ? lastOf(shelf, task) : found;
}

function lastOf(shelf, task) {
  return shelf.moments.reduce((last, moment, i) => (task in moment.gaits ? i : last), 0);
}

class Player {
  constructor(root, data) {
    Object.assign(this, { root, data, time: 0, speed: 1, playing: false, cache: new Map() });
    this.task = String(data.task ?? Object.keys(data.robots)[0]);
    this.sides = $$(".side", root).map((side) => new Side(side, this));
    this.scrub = $("#scrub");
    this.button = $("#play");
    this.openBest();
    this.listen();
    this.changed();
    // A still first picture says most at the moment when the first of the two ends.
    this.seek(Math.min(...this.sides.map((side) => side.gait?.duration || 0)));
    onTheme.push(() => this.draw());
    // Moves on its own only in sight, and only for those who have not asked for calm.
    new IntersectionObserver(([entry]) => {
      if (!entry.isIntersecting) this.pause();
      else if (!wantsCalm.matches && !this.touched) { this.seek(0); this.play(); }
    }, { threshold: 0.35 }).observe($(".stages", root));
  }

  // The run that lost most of this task; what the reader has chosen is left alone as long as it shows a loss too.
  openBest() {
    const best = this.data.starts[this.task], { shelf } = this.sides[0];
    const shows = this.chosen && shelf && afterLearning(shelf, this.task) !== lastOf(shelf, this.task);
    if (best !== undefined && !shows) this.sides.forEach((side) => side.show(best));
    this.sides.forEach((side) => side.choose());
  }

  gait(index) {
    if (!this.cache.has(index)) this.cache.set(index, new Gait(this.data.robots[this.task], this.data.gaits[index]));
    return this.cache.get(index);
  }

  get duration() {
    return Math.max(0.1, ...this.sides.map((side) => side.gait?.duration || 0));
  }

  changed() {
    if (!this.scrub) return;
    this.scrub.max = this.duration.toFixed(3);
    this.seek(Math.min(this.time, this.duration));
  }

  seek(seconds) {
    this.time = clamp(seconds, 0, this.duration);
    this.scrub.value = this.time;
    const text = `${format(this.time, 1)} s`;
    this.scrub.setAttribute("aria-valuetext", text);
    $("#clock").textContent = `${text} of ${format(this.duration, 1)} s`;
    this.draw();
  }

  draw() {
    this.sides.forEach((side) => side.draw(this.time));
    this.race();
  }

  // Both returns so far over the whole episode, above the scrub bar: who is ahead, and when it was lost.
  race() {
    const canvas = $("#race"), c = canvas.getContext("2d"), ratio = Math.min(devicePixelRatio || 1, 2);
    const width = canvas.clientWidth, height = canvas.clientHeight, pad = 4;
    [canvas.width, canvas.height] = [width * ratio, height * ratio];
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    const gaits = this.sides.map((side) => side.gait).filter(Boolean);
    const scores = gaits.flatMap((gait) => [...gait.score]), low = Math.min(0, ...scores), high = Math.max(1, ...scores);
    const X = (t) => 8 + (t / this.duration) * (width - 16), Y = (s) => height - pad - ((s - low) / (high - low)) * (height - 2 * pad);
    gaits.forEach((gait, i) => {
      c.strokeStyle = i ? resolved("--muted") : resolved(`--task-${this.task % 7}`);
      c.setLineDash(i ? [5, 3] : []);
      c.lineWidth = 2;
      c.beginPath();
      gait.score.forEach((score, f) => c[f ? "lineTo" : "moveTo"](X(Math.min(f / gait.robot.frameRate, gait.duration)), Y(score)));
      c.stroke();
      c.setLineDash([]);
      c.fillStyle = c.strokeStyle;
      c.beginPath();
      const frame = Math.round(gait.frameAt(this.time));
      c.arc(X(Math.min(this.time, gait.duration)), Y(gait.score[frame]), 3.5, 0, 7);
      c.fill();
    });
    c.strokeStyle = resolved("--line-strong");
    c.lineWidth = 1;
    c.beginPath(); c.moveTo(X(this.time), 0); c.lineTo(X(this.time), height); c.stroke();
  }

  play() {
    if (this.playing) return;
    this.playing = true;
    this.label();
    let last = performance.now();
    const step = (now) => {
      if (!this.playing) return;
      const next = this.time + ((now - last) / 1000) * this.speed;
      last = now;
      // After a breath at the end it begins again.
      this.rest = next >= this.duration ? (this.rest || now) : 0;
      this.seek(this.rest && now - this.rest > 1200 ? 0 : next);
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  pause() {
    this.playing = false;
    this.label();
  }

  toggle() {
    this.touched = true;
    if (this.playing) return this.pause();
    if (this.time >= this.duration - 1e-6) this.seek(0);
    this.play();
  }

  label() {
    this.button.setAttribute("aria-label", this.playing ? "Pause" : "Play");
    this.button.classList.toggle("playing", this.playing);
  }

  nudge(seconds) {
    this.touched = true;
    this.pause();
    this.seek(this.time + seconds);
  }

  listen() {
    this.button.addEventListener("click", () => this.toggle());
    for (const [id, record] of [["#record", film], ["#record-gif", gif]]) $(id).addEventListener("click", () => {
      this.touched = true;
      if (!this.playing) this.play();
      record($(id), this.sides.map((side) => side.stage.canvas), () => this.sides.map((side) => side.stage.canvas.getAttribute("aria-label")));
    });
    this.scrub.addEventListener("input", () => { this.touched = true; this.pause(); this.seek(Number(this.scrub.value)); });
    $("#speed", this.root).addEventListener("change", (event) => { this.speed = Number(event.target.value); });
    $$("#player-tasks button").forEach((button) => {
      const press = () => $$("#player-tasks button").forEach((other) => other.setAttribute("aria-pressed", String(other.dataset.task === this.task)));
      button.addEventListener("click", () => {
        this.task = button.dataset.task;
        this.time = 0;
        this.cache.clear();
        this.openBest();
        press();
      });
      press();
    });
    this.root.addEventListener("keydown", (event) => {
      if (/^(SELECT|BUTTON|SUMMARY|A)$/.test(event.target.tagName)) return;
      const frame = 1 / 25;
      const action = {
        " ": () => this.toggle(),
        ArrowLeft: () => this.nudge(event.shiftKey ? -1 : -frame),
        ArrowRight: () => this.nudge(event.shiftKey ? 1 : frame),
        Home: () => this.nudge(-Infinity),
        End: () => this.nudge(Infinity),
      }[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    });
    // Drag across a picture to scrub, tap it to play or pause.
    this.sides.forEach(({ stage: { canvas } }) => {
      let from = null, moved = false;
      canvas.addEventListener("pointerdown", (event) => {
        [from, moved] = [{ x: event.clientX, time: this.time }, false];
        canvas.setPointerCapture(event.pointerId);
      });
      canvas.addEventListener("pointermove", (event) => {
        if (!from || Math.abs(event.clientX - from.x) < 6) return;
        if (!moved) this.pause();
        [moved, this.touched] = [true, true];
        this.seek(from.time + ((event.clientX - from.x) / canvas.clientWidth) * this.duration);
      });
      canvas.addEventListener("pointercancel", () => { from = null; });
      canvas.addEventListener("pointerup", () => { if (from && !moved) this.toggle(); from = null; });
    });
    new ResizeObserver(() => this.draw()).observe($(".stages", this.root));
  }
}
