// In a report: at the press of a button the player's robots live, moved by the policies of the moments that it shows.
class Inside {
  constructor(player, plain) {
    Object.assign(this, { player, plain, on: false, stages: [] });
    this.button = make("button", { type: "button", id: "alive", "aria-pressed": "false" }, "Let them live: grab and pull");
    $(".transport", player.root).append(this.button);
    this.button.addEventListener("click", () => this.toggle());
    player.sides.forEach((side) => side.root.addEventListener("loaded", () => { if (this.on) this.show(); }));
  }

  async toggle() {
    this.on = !this.on;
    this.button.setAttribute("aria-pressed", String(this.on));
    this.button.textContent = this.on ? "Back to what was recorded" : "Let them live: grab and pull";
    this.player.touched = true;
    this.player.pause();
    if (!this.data && this.on) {
      this.data = await unpack(this.plain);
      this.stages = this.player.sides.map((side) => {
        const canvas = make("canvas", { tabindex: "0", role: "application" });
        canvas.style.touchAction = "none";
        side.stage.canvas.after(canvas);
        return new LiveStage(canvas, this.data.engine, () => `--task-${this.player.task % 7}`);
      });
      requestAnimationFrame((now) => this.frame(now));
    }
    this.show();
  }

  // Each side shows what lives, or what was recorded where a policy is not in this file.
  show() {
    this.player.sides.forEach((side, i) => {
      const stage = this.stages[i], found = this.on && this.find(side);
      side.stage.canvas.hidden = Boolean(found);
      if (!stage) return;
      stage.canvas.hidden = !found;
      if (!found) return;
      const { run, moment, robot } = found, network = networkOf(run.policy, robot, moment.statistics.get(robot.name));
      if (stage.body !== robot || stage.layout !== run.policy) stage.task(robot, network, moment.theta);
      else stage.policy(network, moment.theta);
      Object.assign(stage, { body: robot, layout: run.policy });
      stage.canvas.setAttribute("aria-label", `${side.stage.canvas.getAttribute("aria-label")}. Alive: arrow keys push it.`);
    });
    if (!this.on) this.player.draw();
  }

  find(side) {
    const { shelf } = side, wanted = shelf.moments[Number(side.moment.value)], name = this.player.data.robots[this.player.task].task;
    const robot = this.data.robots.find((one) => one.name === name), run = this.data.runs.find((one) => one.condition === shelf.condition && one.order === shelf.order && one.seed === shelf.seed);
    const moment = run?.moments.find((one) => one.stage === wanted.stage && one.generation === wanted.generation && one.tasks.includes(name));
    return robot && moment ? { run, moment, robot } : null;
  }

  frame(now) {
    const passed = Math.min((now - (this.last ?? now)) / 1000, 0.1);
    this.last = now;
    if (this.on && !document.hidden) {
      this.stages.forEach((stage, i) => {
        if (stage.canvas.hidden || !stage.now) return;
        stage.advance(passed * this.player.speed);
        stage.paint();
        const { root } = this.player.sides[i];
        $(".distance", root).textContent = `${format(stage.distance(), 1)} m`;
        $(".score", root).textContent = `return ${format(stage.now.total, 0)}`;
        $(".fell", root).hidden = stage.now.healthy;
      });
    }
    requestAnimationFrame((next) => this.frame(next));
  }
}

function startInside(player, plain) { globalThis.inside = new Inside(player, plain); }
