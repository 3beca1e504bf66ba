// Start everything that the page has. Each part stands alone: one that is missing does not stop the others.
document.documentElement.classList.add("scripted");
const data = JSON.parse($("#data").textContent);
startTheme();
startCharts(data);
startPlane(data.plane);
startDownloads();
if ($("#player") && data.shelves.length) {
  globalThis.player = new Player($("#player"), data);
  keepView(globalThis.player);
}
if (data.live) startLab(data.live, $("#lab")).then(() => {
  if (globalThis.lab && !location.search.includes("gait=")) $("#recorded").open = false;  // robots live in its place
});
// Everything is on paper: details are opened for printing and closed again.
addEventListener("beforeprint", () => $$("details:not([open])").forEach((node) => { node.open = true; node.dataset.printed = ""; }));
addEventListener("afterprint", () => $$("details[data-printed]").forEach((node) => { node.open = false; delete node.dataset.printed; }));
