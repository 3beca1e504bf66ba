// What canvases show, side by side, as a film that the reader can keep; the browser's own recorder makes it.
const FILM_SECONDS = 6;

function save(blob, name) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

async function film(button, canvases, captions, name = "evergait.webm") {
  const kind = ["video/webm;codecs=vp9", "video/webm", "video/mp4"].find((type) => globalThis.MediaRecorder?.isTypeSupported(type));
  if (!kind) { button.textContent = "This browser cannot record"; button.disabled = true; return; }
  const width = canvases.reduce((sum, canvas) => sum + canvas.width, 0), height = Math.max(...canvases.map((canvas) => canvas.height)), strip = Math.round(height / 9);
  const sheet = make("canvas", { width, height: height + strip }), c = sheet.getContext("2d"), parts = [];
  const recorder = new MediaRecorder(sheet.captureStream(30), { mimeType: kind, videoBitsPerSecond: 2_500_000 });
  const words = button.textContent, began = performance.now();
  button.disabled = true;
  recorder.ondataavailable = ({ data }) => parts.push(data);
  const done = new Promise((resolve) => { recorder.onstop = resolve; });
  recorder.start();
  const draw = (now) => {
    c.fillStyle = resolved("--stage");
    c.fillRect(0, 0, width, height + strip);
    c.fillStyle = resolved("--ink");
    c.font = `${Math.round(strip * 0.45)}px system-ui, sans-serif`;
    let x = 0;
    canvases.forEach((canvas, i) => {
      c.drawImage(canvas, x, strip);
      c.fillText(captions()[i] ?? "", x + strip / 2, strip * 0.65, canvas.width - strip);
      x += canvas.width;
    });
    const left = FILM_SECONDS - (now - began) / 1000;
    button.textContent = `${format(Math.max(left, 0), 0)} s`;
    if (left > 0) requestAnimationFrame(draw); else recorder.stop();
  };
  requestAnimationFrame(draw);
  await done;
  save(new Blob(parts, { type: kind.split(";")[0] }), kind.startsWith("video/mp4") ? name.replace("webm", "mp4") : name);
  [button.disabled, button.textContent] = [false, words];
}
