// What makes a page a thing to forward: its address keeps the view, and every table, figure and comparison can be saved.

// Cells as a spreadsheet reads them: quotes doubled, and no text that it would take for a formula.
function toCsv(table) {
  const cell = (node) => {
    const text = node.textContent.trim().replace(/\u2212/g, "-").replace(/\s+/g, " ");
    const safe = /^[=+@\t]|^-(?![\d.])/.test(text) ? `'${text}` : text;
    return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return `${$$("tr", table).map((row) => [...row.cells].map(cell).join(",")).join("\n")}\n`;
}

// A picture that stands alone: the page's styles are written into a copy of it.
function alone(picture) {
  const copy = picture.cloneNode(true), box = picture.getBoundingClientRect();
  const from = [picture, ...$$("*", picture)], to = [copy, ...$$("*", copy)];
  from.forEach((node, i) => {
    const style = getComputedStyle(node);
    for (const name of ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "fill-opacity", "font-size", "font-family", "font-weight", "visibility"]) to[i].style.setProperty(name, style.getPropertyValue(name));
    for (const name of ["fill", "stroke"]) to[i].removeAttribute(name);  // they may name the page's colours
  });
  for (const node of $$(".cursor, .brush", copy)) node.remove();
  const attributes = { xmlns: "http://www.w3.org/2000/svg", width: box.width, height: box.height };
  for (const [name, value] of Object.entries(attributes)) copy.setAttribute(name, value);
  if (!copy.hasAttribute("viewBox")) copy.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
  copy.style.background = resolved("--paper");
  return { text: new XMLSerializer().serializeToString(copy), width: box.width, height: box.height };
}

async function savePng(picture, name) {
  const { text, width, height } = alone(picture), image = new Image(), canvas = make("canvas", { width: 2 * width, height: 2 * height });
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
  canvas.toBlob((blob) => save(blob, `${name}.png`));
}

const fileName = (text) => text.trim().toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "evergait";

function startDownloads() {
  const button = (text, label, action) => {
    const node = make("button", { type: "button", class: "save needs-script", "aria-label": label }, text);
    node.addEventListener("click", action);
    return node;
  };
  for (const table of $$("table")) {
    const title = $("caption", table)?.textContent ?? "table";
    (table.closest(".scroll") ?? table).after(button("CSV", `Save the table ${title} as CSV`, () => save(new Blob([toCsv(table)], { type: "text/csv" }), `${fileName(title)}.csv`)));
  }
  for (const figure of $$(".panels figure")) {
    const picture = $("svg", figure), title = $("figcaption", figure)?.textContent ?? "figure";
    if (!picture) continue;
    const svgFile = () => save(new Blob([alone(picture).text], { type: "image/svg+xml" }), `${fileName(title)}.svg`);
    figure.append(make("span", { class: "saves" }, [button("SVG", `Save ${title} as SVG`, svgFile), button("PNG", `Save ${title} as PNG`, () => savePng(picture, fileName(title)))]));
  }
}

// ?task=…&left=condition|order|moment&right=…
function keepView(player) {
  const names = ["left", "right"], { shelves, tasks, robots } = player.data;
  const of = (side) => [side.condition.value, side.shelf.order, side.shelf.moments[Number(side.moment.value)]?.label].join("|");
  const remember = () => {
    const view = new URLSearchParams([["task", tasks[player.task]], ...player.sides.map((side, i) => [names[i], of(side)])]);
    try { history.replaceState(null, "", `?${view}${location.hash}`); } catch { /* some viewers of files allow no address but their own */ }
  };
  const asked = new URLSearchParams(location.search), task = Object.keys(robots).find((index) => tasks[index] === asked.get("task"));
  if (task !== undefined) $(`#player-tasks button[data-task="${task}"]`)?.click();
  player.sides.forEach((side, i) => {
    const [condition, order, label] = (asked.get(names[i]) ?? "").split("|"), shelf = shelves.findIndex((one) => one.condition === condition && one.order === order);
    const moment = shelves[shelf]?.moments.findIndex((one) => one.label === label && player.task in one.gaits);
    if (!(moment >= 0)) return;
    player.chosen = true;
    side.show(shelf);
    side.choose();
    side.moment.value = moment;
    side.load();
  });
  player.sides.forEach((side) => side.root.addEventListener("loaded", remember));
}
