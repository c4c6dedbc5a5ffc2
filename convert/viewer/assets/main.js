"use strict";
// Tabs, tools and the views of the graphs.

const views = [];
const live = document.getElementById("live");
const graphHolder = document.getElementById("graphs");
const layersHolder = document.getElementById("layers");
let isLinking = false;

const listener = {
  selected(view, item) {
    showDetails(view, item);
    document.body.classList.toggle("detailed", Boolean(item));
    live.textContent = item ? `${item.key[0] === "m" ? `module ${item.name}, ${item.isOpen ? "unfolded" : "folded"}` : `${item.type} ${item.name}`}` : "";
    linkViews(view, item);
  },
  progress(words) {
    document.getElementById("progress").textContent = words;
  },
  opened() {
    document.body.classList.add("detailed");
    panel.focus();
  },
  toggled(view, module) {
    live.textContent = `${module.name} ${module.isOpen ? "unfolded" : "folded"}`;
    if (view.selected === module) showDetails(view, module);
  },
};

// Shows in the other graph what a selected node was converted from or to.
function linkViews(view, item) {
  if (views.length !== 2 || isLinking) return;
  const other = views[view === views[0] ? 1 : 0];
  const ids = !item || item.key[0] === "m" ? [] : view === views[1] ? item.sources : item.computedBy;
  const found = ids.map((id) => other.graph.nodes[id]);
  isLinking = true;
  other.selected = null;
  if (found.length) {
    for (const each of found) other.reveal(each);
    other.center(found.at(-1));
  }
  other.mark(found);
  isLinking = false;
}

function openItem(graph, item) {
  showTab("graphs");
  const view = views.find((each) => each.graph === graph);
  if (!view.isFitted) view.fit();
  document.body.dataset.pane = String(views.indexOf(view));
  view.select(item, { center: true });
}

// ---- tabs and tools

const TABS = [];

function showTab(name) {
  for (const [id, tab] of TABS) {
    document.getElementById(id).hidden = id !== name;
    tab.setAttribute("aria-selected", String(id === name));
    tab.tabIndex = id === name ? 0 : -1;
  }
  document.body.dataset.tab = name;
}

function addTab(id, label) {
  const tab = element("button", { role: "tab", "aria-controls": id, onclick: () => showTab(id) }, label);
  TABS.push([id, tab]);
  document.getElementById("tabs").append(tab);
}

function tool(label, hint, action, className = "") {
  return element("button", { class: className, title: hint, "aria-label": hint, onclick: action }, label);
}

function currentView() {
  return views[Number(document.body.dataset.pane || 0)] || views[0];
}

const THEMES = ["system", "light", "dark"];

function nextTheme() {
  const now = document.documentElement.dataset.theme || "system";
  const next = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length];
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  live.textContent = `theme: ${next}`;
}

function addTools() {
  const tools = document.getElementById("tools");
  if (views.length) {
    tools.append(
      tool("−", "Zoom out (-)", () => currentView().zoom(0.8), "ofgraph"),
      tool("+", "Zoom in (+)", () => currentView().zoom(1.25), "ofgraph"),
      tool("Fit", "Show all (0)", () => currentView().fitAll(), "ofgraph"),
      tool("Unfold", "Unfold all modules", () => views.forEach((view) => view.toggleAll(true)), "ofgraph"),
      tool("Fold", "Fold all modules", () => views.forEach((view) => view.toggleAll(false)), "ofgraph"),
    );
    tools.append(tool("Shapes", "Show the shapes of tensors on edges", toggleShapes, "ofgraph"));
    if (reports.length) tools.append(heatChoice());
    tools.append(tool("SVG", "Save the graph as SVG", saveSvg, "ofgraph"));
  }
  tools.append(tool("◐", "Change the theme: system, light, dark", nextTheme), tool("?", "Keys and colours (?)", showHelp));
}

function toggleShapes() {
  for (const view of views) {
    view.hasShapes = !view.hasShapes;
    view.redraw();
  }
}

function heatChoice() {
  const choice = element("select", { class: "ofgraph", "aria-label": "Colour by noise", onchange: () => setHeat(choice.value) },
    element("option", { value: "" }, "No heat"), element("option", { value: "local" }, "Heat: local noise"), element("option", { value: "whole" }, "Heat: accumulated"));
  choice.value = "local";
  return choice;
}

function setHeat(kind) {
  for (const view of views) {
    view.heat = kind ? (item) => heatLevel(view.graph, item, kind) : null;
    view.clear();
  }
  document.body.classList.toggle("heated", Boolean(kind));
}

function showHelp() {
  const help = document.getElementById("help");
  const keys = [["arrows", "along edges, and to the next node"], ["Enter", "fold or unfold a module; details of a node"], ["Backspace", "to the module around"], ["+ − 0", "zoom, show all"], ["/", "search"], ["Esc", "deselect"]];
  const colours = [["family-conv", "convolutions and matrix products"], ["family-act", "activations"], ["family-norm", "normalization"], ["family-pool", "pooling, reductions, resizing"], ["family-shape", "shapes and layouts"], ["family-other", "others"], ["mark-transpose", "transposes"], ["mark-float", "operators kept in float"], ["mark-quantize", "quantize and dequantize"], ...(page.captions ? [["mark-removed", "removed"], ["mark-added", "added"], ["mark-changed", "changed, and modules with differences"]] : [])];
  help.replaceChildren(
    element("h2", {}, "Keys"), pairs(keys),
    element("h2", {}, "Colours"),
    element("ul", { class: "legend" }, ...colours.map(([name, words]) => element("li", {}, swatch(name), words))),
    reports.length ? element("p", {}, "Heat shows the signal-to-noise ratio: the darker, the more noise. ", ...heatScale()) : "",
    element("form", { method: "dialog" }, element("button", { onclick: (event) => { event.preventDefault(); help.close(); } }, "Close")),
  );
  help.showModal();
}

function swatch(name) {
  return svg("svg", { class: "swatch", viewBox: "0 0 26 16", "aria-hidden": "true" }, svg("g", { class: `node ${name}` }, svg("rect", { class: "box", x: 1, y: 1, width: 24, height: 14, rx: 4 }), svg("rect", { class: "strip", x: 4, y: 4, width: 4, height: 8, rx: 2 })));
}

// ---- SVG export

function saveSvg() {
  const view = currentView();
  const whole = layoutOf(view.graph, view.graph.modules[0]);
  const made = svgOf(view, whole);
  const text = `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(made)}`;
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  element("a", { href: address, download: `${view.graph.title.replace(/[^\w.-]+/g, "_")}.svg` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

const EXPORTED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-weight", "font-family", "text-anchor", "opacity", "fill-opacity"];

// The whole graph, with all folded modules folded, and styles as attributes.
function svgOf(view, whole) {
  const { selected, marked } = view;
  const [modules, edges, boxes] = [svg("g", {}), svg("g", {}), svg("g", {})];
  const everything = { x: -Infinity, y: -Infinity, right: Infinity, bottom: Infinity };
  const wanted = new Map();
  view.selected = null;
  view.marked = new Set();
  view.collect(view.graph.modules[0], 0, 0, everything, 1, wanted);
  for (const [key, make] of wanted) (key[0] === "e" ? edges : key.endsWith("+") ? modules : boxes).append(make());
  view.selected = selected;
  view.marked = marked;
  const made = svg("svg", { class: "graph", viewBox: `0 0 ${Math.ceil(whole.width)} ${Math.ceil(whole.height)}`, width: Math.ceil(whole.width), height: Math.ceil(whole.height) }, svg("defs", {}, arrowHead()), modules, edges, boxes);
  const holder = element("div", { class: "offscreen" }, made);
  document.body.append(holder);
  const known = new Map();
  for (const each of made.querySelectorAll("rect, path, circle, text, tspan")) {
    const kind = `${each.parentNode.getAttribute("class")} ${each.tagName} ${each.getAttribute("class")} ${each.parentNode.parentNode.getAttribute?.("class")}`;
    if (!known.has(kind)) {
      const style = getComputedStyle(each);
      known.set(kind, EXPORTED.map((name) => [name, style.getPropertyValue(name)]));
    }
    for (const [name, value] of known.get(kind)) each.setAttribute(name, value);
  }
  const paper = getComputedStyle(document.body).backgroundColor;
  made.prepend(svg("rect", { width: "100%", height: "100%", fill: paper }));
  holder.remove();
  return made;
}

// ---- start

function start() {
  document.title = page.title;
  document.getElementById("title").textContent = page.title;
  const captions = page.captions || ["Source", "File"];
  document.body.dataset.pane = graphs.length > 1 ? "1" : "0";
  document.body.classList.toggle("two", graphs.length > 1);
  for (const [index, graph] of graphs.entries()) {
    const holder = element("div", { class: "pane", "data-pane": index });
    if (graphs.length > 1) {
      const other = () => { document.body.dataset.pane = String(1 - index); };
      holder.append(element("div", { class: "caption" }, element("b", {}, captions[index]), ` ${graph.title}`, element("button", { class: "swap", onclick: other }, `Show ${captions[1 - index].toLowerCase()}`)));
    }
    graphHolder.append(holder);
    views.push(new GraphView(graph, holder, listener));
    holder.addEventListener("pointerdown", () => { document.body.dataset.pane = String(index); });
    holder.addEventListener("focusin", () => { document.body.dataset.pane = String(index); });
  }
  if (reports.length) {
    addTab("layers", reports.length > 1 ? "Layers of two runs" : "Layers");
    buildReport(layersHolder);
  }
  if (graphs.length) addTab("graphs", "Graph");
  document.getElementById("tabs").hidden = TABS.length < 2;
  showTab(TABS[0][0]);
  document.getElementById("searchbox").hidden = !graphs.length;
  addTools();
  showDetails(views[0], null);
  if (reports.length) setHeat("local");
  for (const view of views) view.fit();
}

document.addEventListener("keydown", (event) => {
  const isTyping = /INPUT|SELECT|TEXTAREA/.test(event.target.tagName);
  if (event.key === "/" && !isTyping) {
    event.preventDefault();
    searchInput.focus();
  } else if (event.key === "?" && !isTyping) {
    showHelp();
  }
});
start();
