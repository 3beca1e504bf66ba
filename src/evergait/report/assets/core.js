// Small helpers that every part of the page shares, and the theme. Text only ever enters the page through textContent.
const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

function make(tag, attributes = {}, children = [], namespace = null) {
  const node = namespace ? document.createElementNS(namespace, tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    node.setAttribute(key, value === true ? "" : value);
  }
  for (const child of [].concat(children)) node.append(child);
  return node;
}
const svg = (tag, attributes, children) => make(tag, attributes, children, "http://www.w3.org/2000/svg");

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const format = (value, digits = 2) => {
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "\u2212");
};

// As `number` in ranking.py: as many digits as a reader wants.
const short = (value) => format(value, Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2);

// A task has the same colour, line style and marker everywhere; styles tell tasks apart without any colour.
const DASHES = ["", "7 3", "2 3", "9 3 2 3", "1 4", "12 4", "5 2 1 2", "3 3"];
const colourOf = (task) => `var(--task-${task % 7})`;
const dashOf = (task) => DASHES[task % DASHES.length];
const resolved = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const wantsDark = matchMedia("(prefers-color-scheme: dark)");
const wantsCalm = matchMedia("(prefers-reduced-motion: reduce)");
const onTheme = [];

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  const button = $("#theme");
  const next = theme === "dark" ? "light" : "dark";
  if (button) {
    button.textContent = next === "dark" ? "Dark" : "Light";
    button.setAttribute("aria-label", `Switch to ${next} colours`);
  }
  onTheme.forEach((redraw) => redraw());
}

function startTheme() {
  setTheme(wantsDark.matches ? "dark" : "light");
  wantsDark.addEventListener("change", () => setTheme(wantsDark.matches ? "dark" : "light"));
  const button = $("#theme");
  if (!button) return;
  button.hidden = false;
  button.addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
}
