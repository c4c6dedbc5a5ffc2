"use strict";
// The report of quantization noise: a summary, a chart, and a table to sort and to search; two runs compared.

const reports = page.reports;
// dB: the lower limits of the levels of heat; comparisons of floats have others
const LEVELS = (reports[0] && reports[0].levels) || [40, 30, 20, 10];
for (const report of reports) {
  for (const layer of report.layers) {
    const qparams = report.quantization && report.quantization[layer.name];
    layer.activations = report.histograms && report.histograms[layer.name];
    if (!qparams) continue;
    layer.type = qparams.type;
    layer.zero_point = qparams.zero[0] ?? 0;
  }
}
const byLayer = reports.map((report) => new Map(report.layers.map((layer) => [layer.name, layer])));

function levelOf(ratio) {
  if (ratio === null || ratio === undefined) return null;
  const level = LEVELS.findIndex((limit) => ratio >= limit);
  return level < 0 ? LEVELS.length : level;
}

function layerOf(node, graph, run = 0) {
  if (!reports.length) return null;
  for (const index of node.outputs) {
    const found = byLayer[run].get(graph.tensors[index].name);
    if (found) return found;
  }
  // the result of an operator before a pair of QuantizeLinear and DequantizeLinear
  const next = node.mark !== "quantize" && node.outputs.length === 1 ? graph.tensors[node.outputs[0]].users : [];
  if (next.length === 1 && graph.nodes[next[0]].mark === "quantize") {
    const quantized = graph.nodes[next[0]];
    for (const user of graph.tensors[quantized.outputs[0]].users) {
      const found = graph.nodes[user].mark === "quantize" && byLayer[run].get(graph.tensors[graph.nodes[user].outputs[0]].name);
      if (found) return found;
    }
  }
  return null;
}

// The level of a node, and of a module that of its worst node.
function heatLevel(graph, item, kind) {
  const key = kind === "local" ? "local_db" : "accumulated_db";
  if (item.key[0] === "n") {
    const layer = layerOf(item, graph);
    return layer ? levelOf(layer[key]) : null;
  }
  if (!graph.heatCache || graph.heatCache.kind !== kind) graph.heatCache = { kind, levels: moduleLevels(graph, key) };
  return graph.heatCache.levels.get(item.id) ?? null;
}

function moduleLevels(graph, key) {
  const levels = new Map();
  for (const node of graph.nodes) {
    const layer = layerOf(node, graph);
    const level = layer ? levelOf(layer[key]) : null;
    if (level === null) continue;
    for (const module of graph.ancestors(node)) levels.set(module.id, Math.max(levels.get(module.id) ?? 0, level));
  }
  return levels;
}

function heatScale() {
  const between = LEVELS.slice(1).map((limit, number) => `${limit} to ${LEVELS[number]}`);
  const words = [`${LEVELS[0]} dB or more`, ...between, `below ${LEVELS[LEVELS.length - 1]}`];
  return words.map((label, level) => element("span", { class: `chip heat-${level}` }, label));
}

function decibels(value) {
  return value === null || value === undefined ? "–" : `${value.toFixed(1)} dB`;
}

function percent(value) {
  if (value === null || value === undefined) return "–";
  return value === 0 ? "0" : value < 0.001 ? `${(100 * value).toFixed(3)} %` : `${(100 * value).toFixed(1)} %`;
}

// What the details of a node show of its layer.
function reportRows(node) {
  const graph = graphs.find((each) => each.nodes[node.id] === node);
  return reports.flatMap((report, run) => {
    const layer = layerOf(node, graph, run);
    if (!layer) return [];
    return [layerFacts(layer, reports.length > 1 ? report.model : "")];
  });
}

function layerFacts(layer, runName) {
  const made = element("div", { class: "layerfacts" });
  if (runName) made.append(element("b", {}, runName));
  made.append(pairs([
    ["local", decibels(layer.local_db)], ["accumulated", decibels(layer.accumulated_db)],
    ["type", layer.type || "float"], ["scale, zero point", layer.step ? `${number(layer.step)}, ${layer.zero_point ?? 0}` : "–"],
    ["clipped", percent(layer.clipped)], ["range used", layer.step ? percent(layer.range_used) : "–"],
  ]));
  if (layer.activations) made.append(channelChart("Activations by channel", layer.activations));
  return made;
}

// A picture of histograms: a row for each channel, dark where many elements are.
function channelChart(label, histogramOf) {
  const { counts, low, high } = histogramOf;
  const [rows, bins] = [counts.length, counts[0].length];
  const width = 240;
  const tall = Math.min(Math.max(rows * 6, 18), 168);
  const made = svg("svg", { class: "channels", viewBox: `0 0 ${width} ${tall}`, role: "img", preserveAspectRatio: "none", "aria-label": label });
  counts.forEach((row, channel) => {
    const largest = Math.max(...row, 1);
    row.forEach((count, bin) => {
      if (!count) return;
      made.append(svg("rect", { x: ((bin * width) / bins).toFixed(2), y: ((channel * tall) / rows).toFixed(2), width: (width / bins).toFixed(2), height: (tall / rows).toFixed(2), opacity: (0.12 + 0.88 * (count / largest)).toFixed(2) }));
    });
  });
  const about = histogramOf.channels > rows ? `${rows} groups of ${histogramOf.channels} channels` : rows === 1 ? "all elements" : `${rows} channels`;
  return element("figure", { class: "channelchart" }, element("figcaption", {}, `${label}: ${about}, from ${number(low)} to ${number(high)}`), made);
}

// ---- the page of layers

const COLUMNS = [
  ["number", "#", (row) => row.order],
  ["name", "layer", (row) => row.layer.name],
  ["op", "op", (row) => row.layer.op],
  ["type", "type", (row) => row.layer.type || "float"],
  ["step", "scale", (row) => row.layer.step ?? -1],
  ["zero", "zero", (row) => row.layer.zero_point ?? 0],
  ["local", "local", (row) => row.layer.local_db ?? Infinity],
  ["whole", "accumulated", (row) => row.layer.accumulated_db ?? Infinity],
  ["clipped", "clipped", (row) => row.layer.clipped],
  ["used", "range used", (row) => row.layer.range_used],
  ["module", "module", (row) => row.layer.module || ""],
];
const NUMERIC = new Set(["number", "step", "zero", "local", "whole", "clipped", "used", "change"]);

const table = { key: "number", isDescending: false, filter: "", columns: COLUMNS, rows: [], body: null, head: null };

function buildReport(holder) {
  const report = reports[0];
  table.rows = report.layers.map((layer, index) => ({ layer, order: index + 1, other: reports[1] ? byLayer[1].get(layer.name) : null }));
  if (reports.length > 1) {
    table.columns = [...COLUMNS.slice(0, 8), ["other", "other run", (row) => row.other?.accumulated_db ?? Infinity], ["change", "change", changeOf], ...COLUMNS.slice(8)];
    NUMERIC.add("other");
  }
  const filter = element("input", { type: "search", id: "filter", placeholder: "Filter layers", "aria-label": "Filter layers", oninput: () => { table.filter = filter.value.toLowerCase(); fillTable(); } });
  table.head = element("tr", {});
  table.body = element("tbody", {});
  holder.append(
    element("div", { class: "reportpage" },
      ...summaries(),
      adviceElement(report),
      element("h2", {}, "Signal to noise of each layer"),
      chartLegend(), chart(),
      element("div", { class: "tabletools" }, element("h2", {}, "Layers"), filter),
      element("div", { class: "tableholder" }, element("table", { class: "layers" }, element("thead", {}, table.head), table.body))));
  fillTable();
}

function summaries() {
  const cards = reports.map((report) => element("div", { class: "card" },
    element("h2", {}, report.model), element("p", { class: "muted" }, `${report.layers.length} layers, measured in ${report.runtime} on ${report.inputs}`),
    pairs(report.summary || [])));
  return [element("div", { class: "cards" }, ...cards)];
}

function adviceElement(report) {
  if (!report.advice || !report.advice.length) return null;
  const items = report.advice.map((each) => element("li", {},
    element("button", { class: "link", onclick: () => showLayer(each.layer) }, each.layer), ` ${each.text} `, each.rule ? element("code", {}, each.rule) : null));
  return element("div", {}, element("h2", {}, "What to try"), element("ul", { class: "advice" }, ...items));
}

function changeOf(row) {
  const [one, other] = [row.layer.accumulated_db, row.other?.accumulated_db];
  return one === null || one === undefined || other === null || other === undefined ? 0 : other - one;
}

function sortBy(key) {
  table.isDescending = table.key === key ? !table.isDescending : false;
  table.key = key;
  fillTable();
}

function sortedRows() {
  const value = table.columns.find(([key]) => key === table.key)[2];
  const sign = table.isDescending ? -1 : 1;
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  const words = table.filter.split(/\s+/).filter(Boolean);
  const found = table.rows.filter(({ layer }) => {
    const all = `${layer.name} ${layer.op} ${layer.module || ""} ${layer.type || "float"} ${layer.source || ""}`.toLowerCase();
    return words.every((word) => all.includes(word));
  });
  return found.sort((a, b) => sign * compare(value(a), value(b)) || a.order - b.order);
}

function fillTable() {
  table.head.replaceChildren(...table.columns.map(([key, label]) => {
    const isSorted = table.key === key;
    return element("th", { class: NUMERIC.has(key) ? "numeric" : "", "aria-sort": isSorted ? (table.isDescending ? "descending" : "ascending") : "none" },
      element("button", { onclick: () => sortBy(key) }, label, isSorted ? (table.isDescending ? " ▾" : " ▴") : ""));
  }));
  table.body.replaceChildren(...sortedRows().map(rowElement));
}

function rowElement(row) {
  const { layer } = row;
  const cells = {
    number: row.order, name: element("button", { class: "link", onclick: () => showLayer(layer.name), title: layer.source || layer.name }, layer.name), op: layer.op,
    type: layer.type || "float", step: layer.step ? number(layer.step) : "–", zero: layer.step ? (layer.zero_point ?? "–") : "–",
    local: decibels(layer.local_db), whole: decibels(layer.accumulated_db), clipped: percent(layer.clipped), used: layer.step ? percent(layer.range_used) : "–",
    module: layer.module || "", other: row.other ? decibels(row.other.accumulated_db) : "–", change: row.other ? `${changeOf(row) > 0 ? "+" : ""}${changeOf(row).toFixed(1)}` : "–",
  };
  const levels = { local: levelOf(layer.local_db), whole: levelOf(layer.accumulated_db) };
  return element("tr", {}, ...table.columns.map(([key]) => {
    const level = levels[key];
    return element("td", { class: `${NUMERIC.has(key) ? "numeric" : ""} ${level === null || level === undefined ? "" : `heat-${level}`}` }, cells[key]);
  }));
}

// Selects the node of a layer; without a graph, shows what is known of the layer.
function showLayer(name) {
  for (const graph of [...graphs].reverse()) {
    const node = graph.byTensor.get(name);
    if (node) return openItem(graph, node);
  }
  const layer = byLayer[0].get(name);
  if (!layer) return undefined;
  panel.replaceChildren(heading(layer.op, layer.name), layerFacts(layer, ""));
  document.body.classList.add("detailed");
  return undefined;
}

// ---- the chart

function chartLegend() {
  const entry = (name, words) => element("span", {}, element("i", { class: `key ${name}` }), words);
  const others = reports.length > 1 ? [entry("other", `accumulated, ${reports[1].model}`)] : [];
  return element("p", { class: "chartlegend" }, entry("local", "local: what the layer itself adds"), entry("whole", "accumulated: against the float model"), ...others);
}

function chart() {
  const [left, top, height] = [52, 10, 220];
  const rows = table.rows;
  const step = Math.max(1150 / Math.max(rows.length, 1), 7);
  const width = left + step * rows.length + 12;
  const known = rows.flatMap((row) => [row.layer.local_db, row.layer.accumulated_db, row.other?.accumulated_db]).filter((value) => typeof value === "number");
  const largest = Math.max(60, ...known);
  const at = (value) => top + height * (1 - Math.min(Math.max(value ?? largest, 0), largest) / largest);
  const made = svg("svg", { viewBox: `0 0 ${width} ${height + 2 * top + 4}`, width, height: height + 2 * top + 4, class: rows.length > 150 ? "chart wide" : "chart", role: "img", "aria-label": "Signal to noise of each layer, in dB" });
  for (let value = 0; value <= largest; value += 10) {
    made.append(svg("line", { class: "rule", x1: left, x2: width, y1: at(value), y2: at(value) }));
    if (value % 20 === 0) made.append(axisLabel(left - 8, at(value) + 4, `${value} dB`));
  }
  const lines = [["whole", (row) => row.layer.accumulated_db], ["local", (row) => row.layer.local_db]];
  if (reports.length > 1) lines.unshift(["other", (row) => row.other?.accumulated_db]);
  for (const [name, value] of lines) {
    const points = rows.map((row, index) => [left + (index + 0.5) * step, at(value(row))]);
    made.append(svg("polyline", { class: `line ${name}`, points: points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ") }));
    if (rows.length > 600) continue;
    rows.forEach((row, index) => {
      const dot = svg("circle", { class: `dot ${name}`, cx: points[index][0].toFixed(1), cy: points[index][1].toFixed(1), r: 3.2 }, title(`${row.layer.name} (${row.layer.op}): ${decibels(value(row))}`));
      dot.addEventListener("click", () => showLayer(row.layer.name));
      made.append(dot);
    });
  }
  return element("div", { class: "chartholder" }, made);
}

function axisLabel(x, y, words) {
  const made = svg("text", { x, y, "text-anchor": "end" });
  made.append(words);
  return made;
}
