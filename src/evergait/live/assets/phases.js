// The tree of phases: a row per run, a chip per phase; runs that begin alike share their first chips' state.
const taskName = (task) => String(task).replace(/-v\d+/, "");

class Phases {
  constructor(root, choose) {
    Object.assign(this, { root, choose, chips: new Map(), chosen: null });
  }

  show(training, cells) {
    this.chips.clear();
    this.root.replaceChildren(...cells.map((cell) => {
      const chips = cell.phases.map((name, stage) => {
        const chip = make("button", { type: "button", class: "chip", "aria-pressed": "false" }, cell.phases.length === cell.stream.length ? taskName(cell.stream[stage]) : `phase ${stage + 1}`);
        chip.addEventListener("click", () => this.choose(cell, name, stage));
        if (!this.chips.has(name)) this.chips.set(name, []);
        this.chips.get(name).push(chip);
        return chip;
      });
      return make("div", { class: "cell" }, [make("span", { class: "cell-name", title: nameOf(cell) }, nameOf(cell)), make("span", { class: "chips" }, chips)]);
    }));
    for (const [name, state] of Object.entries(training.phases)) this.update(name, state);
    this.press(this.chosen);
  }

  update(name, { state, done, detail }) {
    for (const chip of this.chips.get(name) ?? []) {
      chip.className = `chip ${/^(running|queued|done|stopped|failed)$/.test(state) ? state : "queued"}`;
      chip.style.setProperty("--part", `${(100 * done).toFixed(1)}%`);
      chip.title = detail ? `${state}: ${detail}` : state;
    }
  }

  press(name) {
    this.chosen = name;
    for (const [mine, chips] of this.chips) chips.forEach((chip) => chip.setAttribute("aria-pressed", String(mine === name)));
  }
}

const nameOf = (cell) => `${cell.condition} \u00b7 ${cell.order}${cell.seed ? ` \u00b7 seed ${cell.seed}` : ""}`;
