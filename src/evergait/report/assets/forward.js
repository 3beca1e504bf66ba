// What makes a page a thing to forward: its address keeps the view, and every table, figure and comparison can be saved.

// Cells as a spreadsheet reads them: quotes doubled, and no text that it would take for a formula. Where a cell has a
// return below its score, each has a column.
function toCsv(table) {
  const both = $(".returns", table) !== null;
  const parts = (node) => {
    if (!both || node.cellIndex === 0) return [node.textContent];
    const below = $(".returns", node);
    return below ? [node.firstChild.textContent, below.textContent] : [node.textContent, `${node.textContent}, return`];
  };
  const cell = (content) => {
    const text = content.trim().replace(/\u2212/g, "-").replace(/\s+/g, " ");
    const safe = /^[=+@\t]|^-(?![\d.])/.test(text) ? `'${text}` : text;
    return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return `${$$("tr", table).map((row) => [...row.cells].flatMap(parts).map(cell).join(",")).join("\n")}\n`;
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

function save(blob, name) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// What canvases show, side by side under their captions, for some seconds: `each` gets the sheet once per interval.
globalThis.filmSeconds = 6;

async function filmed(button, sheet, canvases, captions, each, every = 0) {
  const c = sheet.getContext("2d"), words = button.textContent, began = performance.now(), width = canvases.reduce((sum, canvas) => sum + canvas.width, 0);
  const scale = sheet.width / width, strip = sheet.height - Math.max(...canvases.map((canvas) => canvas.height)) * scale;
  button.disabled = true;
  let next = 0;
  await new Promise((resolve) => {
    const draw = (now) => {
      const passed = Math.max(0, (now - began) / 1000);
      button.textContent = `${format(Math.max(filmSeconds - passed, 0), 0)} s`;
      if (passed >= next) {
        next += every;
        c.fillStyle = resolved("--stage");
        c.fillRect(0, 0, sheet.width, sheet.height);
        c.fillStyle = resolved("--ink");
        c.font = `${Math.round(strip * 0.45)}px system-ui, sans-serif`;
        let x = 0;
        canvases.forEach((canvas, i) => {
          c.drawImage(canvas, x, strip, canvas.width * scale, canvas.height * scale);
          c.fillText(captions()[i] ?? "", x + strip / 2, strip * 0.65, canvas.width * scale - strip);
          x += canvas.width * scale;
        });
        each();
      }
      if (passed < filmSeconds) requestAnimationFrame(draw); else resolve();
    };
    requestAnimationFrame(draw);
  });
  [button.disabled, button.textContent] = [false, words];
}

function sheetFor(canvases, most) {
  const width = canvases.reduce((sum, canvas) => sum + canvas.width, 0), height = Math.max(...canvases.map((canvas) => canvas.height)) * (10 / 9), scale = Math.min(1, most / width);
  return make("canvas", { width: 2 * Math.round((width * scale) / 2), height: 2 * Math.round((height * scale) / 2) });
}

// A film by the browser's own recorder.
async function film(button, canvases, captions, name = "evergait.webm") {
  const kind = ["video/webm;codecs=vp8", "video/webm", "video/mp4"].find((type) => globalThis.MediaRecorder?.isTypeSupported(type));
  if (!kind) { button.textContent = "This browser makes no video; a GIF works"; button.disabled = true; return; }
  const sheet = sheetFor(canvases, 1920), parts = [], recorder = new MediaRecorder(sheet.captureStream(30), { mimeType: kind, videoBitsPerSecond: 2_500_000 });
  recorder.ondataavailable = ({ data }) => parts.push(data);
  const done = new Promise((resolve) => { recorder.onstop = resolve; });
  recorder.start();
  await filmed(button, sheet, canvases, captions, () => {});
  recorder.stop();
  await done;
  save(new Blob(parts, { type: kind.split(";")[0] }), kind.startsWith("video/mp4") ? name.replace("webm", "mp4") : name);
}

// The same as a GIF, which goes anywhere: the 255 commonest colours, others by the nearest; what stays the same is left out.
const GIF_WIDTH = 640, GIF_DELAY = 8;  // hundredths of a second

async function gif(button, canvases, captions, name = "evergait.gif") {
  const sheet = sheetFor(canvases, GIF_WIDTH), c = sheet.getContext("2d", { willReadFrequently: true }), frames = [];
  await filmed(button, sheet, canvases, captions, () => frames.push(new Uint32Array(c.getImageData(0, 0, sheet.width, sheet.height).data.buffer)), GIF_DELAY / 100);
  save(new Blob([encodeGif(frames, sheet.width, sheet.height)], { type: "image/gif" }), name);
}

function encodeGif(frames, width, height) {
  const counts = new Map(), same = 255, short = (n) => [n & 255, n >> 8], out = [];
  for (const frame of frames) for (const colour of frame) counts.set(colour, (counts.get(colour) ?? 0) + 1);
  const palette = [...counts].sort((a, b) => b[1] - a[1]).slice(0, same).map(([colour]) => colour);
  const index = new Map([...counts.keys()].map((colour) => [colour, nearestColour(palette, colour)]));
  const bytes = new Uint8Array(3 * 256);
  palette.forEach((colour, i) => bytes.set([colour & 255, (colour >> 8) & 255, (colour >> 16) & 255], 3 * i));
  out.push(Uint8Array.from([..."GIF89a"].map((c) => c.charCodeAt(0))), Uint8Array.of(...short(width), ...short(height), 0xf7, 0, 0), bytes);
  out.push(Uint8Array.of(0x21, 0xff, 11, ...[..."NETSCAPE2.0"].map((c) => c.charCodeAt(0)), 3, 1, 0, 0, 0));  // for ever
  let before = null;
  for (const frame of frames) {
    const pixels = Uint8Array.from(frame, (colour) => index.get(colour)), shown = pixels.map((colour, i) => (before?.[i] === colour ? same : colour));
    out.push(Uint8Array.of(0x21, 0xf9, 4, 0x05, ...short(GIF_DELAY), same, 0, 0x2c, 0, 0, 0, 0, ...short(width), ...short(height), 0, 8), packGif(shown));
    before = pixels;
  }
  return new Blob([...out, Uint8Array.of(0x3b)]);
}

function nearestColour(palette, colour) {
  let best = 0, least = Infinity;
  for (let i = 0; i < palette.length && least; i++) {
    let away = 0;
    for (const shift of [0, 8, 16]) away += (((palette[i] >> shift) & 255) - ((colour >> shift) & 255)) ** 2;
    if (away < least) [best, least] = [i, away];
  }
  return best;
}

// GIF's LZW: codes that grow from 9 to 12 bits, in blocks of up to 255 bytes.
function packGif(pixels) {
  const clear = 256, codes = [], known = new Map(), blocks = [];
  let size = 9, next = clear + 2, bits = 0, held = 0, prefix = pixels[0];
  const put = (code) => {
    bits |= code << held;
    for (held += size; held >= 8; held -= 8, bits >>>= 8) codes.push(bits & 255);
  };
  put(clear);
  for (let i = 1; i < pixels.length; i++) {
    const key = (prefix << 8) | pixels[i], code = known.get(key);
    if (code !== undefined) { prefix = code; continue; }
    put(prefix);
    prefix = pixels[i];
    if (next < 4096) {
      known.set(key, next);
      if (next++ === 1 << size) size++;
    } else {
      put(clear);
      known.clear();
      [size, next] = [9, clear + 2];
    }
  }
  put(prefix);
  put(clear + 1);
  if (held) codes.push(bits & 255);
  for (let at = 0; at < codes.length; at += 255) blocks.push(Math.min(255, codes.length - at), ...codes.slice(at, at + 255));
  return Uint8Array.from([...blocks, 0]);
}

// The address keeps the view; each part of a page keeps its own words in it.
function keepInAddress(view) {
  const all = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(view)) all.set(name, value);
  try { history.replaceState(null, "", `?${all}${location.hash}`); } catch { /* some viewers of files allow no address but their own */ }
}

// ?gait=task&gait-left=condition|order|moment&gait-right=…
function keepView(player) {
  const names = ["gait-left", "gait-right"], { shelves, tasks, robots } = player.data;
  const of = (side) => [side.condition.value, side.shelf.order, side.shelf.moments[Number(side.moment.value)]?.label].join("|");
  const remember = () => keepInAddress(Object.fromEntries([["gait", tasks[player.task]], ...player.sides.map((side, i) => [names[i], of(side)])]));
  const asked = new URLSearchParams(location.search), task = Object.keys(robots).find((index) => tasks[index] === asked.get("gait"));
  if (task !== undefined) $(`#player-tasks button[data-task="${task}"]`)?.click();
  player.sides.forEach((side, i) => {
    const wanted = asked.get(names[i]) ?? "", start = (one) => `${one.condition}|${one.order}|`;  // names may have a | too
    const shelf = shelves.findIndex((one) => wanted.startsWith(start(one)));
    const moment = shelves[shelf]?.moments.findIndex((one) => start(shelves[shelf]) + one.label === wanted && player.task in one.gaits);
    if (!(moment >= 0)) return;
    player.chosen = true;
    side.show(shelf);
    side.choose();
    side.moment.value = moment;
    side.load();
  });
  player.sides.forEach((side) => side.root.addEventListener("loaded", remember));
}
