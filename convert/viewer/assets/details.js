"use strict";
// The panel with what is known of a node, a module, or the whole model.

const FEW = 8; // entries of a list that are shown at once
const panel = document.getElementById("details");

function showDetails(view, item) {
  const parts = !item ? aboutGraphs() : item.key[0] === "m" ? aboutModule(view, item) : aboutNode(view, item);
  const close = element("button", { class: "close", "aria-label": "Close details", onclick: () => document.body.classList.remove("detailed") }, "×");
  panel.replaceChildren(close, ...parts);
  panel.scrollTop = 0;
}

function heading(words, about) {
  return element("div", { class: "heading" }, element("h2", {}, words), about ? element("p", { class: "muted" }, about) : null);
}

function section(words, ...children) {
  return element("section", {}, element("h3", {}, words), ...children);
}

function pairs(entries) {
  const made = element("dl", {});
  for (const [name, value] of entries) {
    made.append(element("dt", {}, name), element("dd", {}, value instanceof Node ? value : String(value)));
  }
  return made;
}

// ---- the whole model

function aboutGraphs() {
  return graphs.flatMap((graph) => {
    const counts = new Map();
    for (const node of graph.nodes) counts.set(node.type, (counts.get(node.type) || 0) + 1);
    const sorted = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    const stored = Object.values(graph.constants).reduce((sum, each) => sum + (each.bytes || 0), 0);
    const marks = ["float", "transpose", "quantize", "removed", "added", "changed"].map((mark) => [mark, graph.nodes.filter((node) => node.mark === mark)]);
    return [
      heading(graph.title, graph.kind),
      pairs([...graph.summary, ["nodes", number(graph.nodes.length)], ["constants", byteSize(stored)]]),
      section("Inputs", ...graph.inputs.map((index) => tensorElement(graph, index))),
      section("Outputs", ...graph.outputs.map((index) => tensorElement(graph, index))),
      section("Operators", operatorTable(graph, sorted)),
      ...marks.filter(([, found]) => found.length).map(([mark, found]) => section(`${MARK_NAMES[mark]}: ${found.length}`, links(graph, found))),
    ];
  });
}

const MARK_NAMES = { float: "Kept in float", transpose: "Transposes", quantize: "Quantize and dequantize", removed: "Removed", added: "Added", changed: "Changed" };

function operatorTable(graph, counts) {
  const largest = counts.length ? counts[0][1] : 1;
  return element("table", { class: "counts" }, element("tbody", {}, ...counts.map(([type, count]) => element("tr", {},
    element("td", {}, element("button", { class: "link", onclick: () => searchFor(type) }, type)),
    element("td", { class: "bar" }, element("meter", { max: largest, value: count, title: `${count} of ${graph.nodes.length}` })),
    element("td", { class: "count" }, number(count))))));
}

// ---- modules and nodes

function aboutModule(view, module) {
  const { graph } = view;
  const inside = graph.nodes.filter((node) => graph.isIn(node, module));
  const counts = new Map();
  for (const node of inside) counts.set(node.type, (counts.get(node.type) || 0) + 1);
  const sorted = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  const path = [module, ...graph.ancestors(module)].filter((each) => each.id > 0 && !each.isSection).map((each) => each.name).reverse().join(".");
  return [
    heading(module.title, module.className),
    element("p", {}, element("button", { onclick: () => view.toggle(module) }, module.isOpen ? "Fold" : "Unfold")),
    pairs([["path", path || "/"], ["nodes", number(inside.length)]]),
    section("Operators", operatorTable(graph, sorted)),
  ];
}

function aboutNode(view, node) {
  const { graph } = view;
  const facts = [["name", node.name]];
  if (node.path) facts.push(["module", node.path]);
  if (node.source) facts.push(["source", node.source]);
  if (node.mark) facts.push(["remark", MARK_NAMES[node.mark]]);
  const parts = [heading(node.type, graph.title), pairs(facts)];
  const noise = reportRows(node);
  if (noise.length) parts.push(section("Quantization noise", ...noise));
  const attributes = Object.entries(node.attributes);
  if (attributes.length) parts.push(section("Attributes", pairs(attributes)));
  parts.push(section("Inputs", ...node.inputs.map((index) => (index < 0 ? element("p", { class: "muted" }, "left out") : tensorElement(graph, index)))));
  parts.push(section("Outputs", ...node.outputs.map((index) => tensorElement(graph, index))));
  if (graphs.length === 2 && graph === graphs[1] && node.sources.length) {
    const fused = node.sources.length > 1 ? `Computes ${node.sources.length} nodes of the source` : "Node of the source";
    parts.push(section(fused, links(graphs[0], node.sources.map((id) => graphs[0].nodes[id]))));
  }
  if (graphs.length === 2 && graph === graphs[0]) {
    const found = node.computedBy.map((id) => graphs[1].nodes[id]);
    parts.push(section("In the written file", found.length ? links(graphs[1], found) : element("p", { class: "muted" }, "no operator: folded into constants, or removed")));
  }
  return parts;
}

function links(graph, nodes) {
  const entry = (node) => element("li", {}, element("button", { class: "link", onclick: () => openItem(graph, node) }, element("b", {}, node.type), ` ${node.name}`));
  const made = element("ul", { class: "links" }, ...nodes.slice(0, FEW).map(entry));
  if (nodes.length > FEW) {
    const more = element("li", {}, element("button", { class: "link", onclick: () => more.replaceWith(...nodes.slice(FEW).map(entry)) }, `${nodes.length - FEW} more`));
    made.append(more);
  }
  return made;
}

// ---- tensors

function tensorElement(graph, index) {
  const tensor = graph.tensors[index];
  const made = element("div", { class: "tensor" });
  const others = tensor.producer >= 0 ? [graph.nodes[tensor.producer]] : [];
  const name = others.length ? element("button", { class: "link", onclick: () => openItem(graph, others[0]) }, tensor.name) : element("span", {}, tensor.name);
  made.append(element("div", { class: "line" }, name, element("code", {}, tensor.type)));
  if (tensor.qparams) made.append(qparamsElement(tensor.qparams));
  if (tensor.constant) made.append(constantElement(tensor.constant));
  return made;
}

function qparamsElement(qparams) {
  const isMany = qparams.count > 1;
  const scale = isMany ? `${number(qparams.least)} to ${number(qparams.largest)}, ${qparams.count} on axis ${qparams.axis}` : number(qparams.scale[0]);
  const zeros = new Set(qparams.zero);
  const zero = zeros.size > 1 ? `${number(Math.min(...qparams.zero))} to ${number(Math.max(...qparams.zero))}` : number(qparams.zero[0] ?? 0);
  return element("div", { class: "facts" }, `${qparams.type}, scale ${scale}, zero point ${zero}`);
}

function constantElement(constant) {
  if (constant.missing) return element("div", { class: "facts" }, constant.missing);
  const made = element("div", { class: "facts" });
  const facts = [`${number(constant.count)} ${constant.count === 1 ? "element" : "elements"}, ${byteSize(constant.bytes)}`];
  if (constant.min !== undefined) {
    facts.push(`min ${number(constant.min)}, max ${number(constant.max)}, mean ${number(constant.mean)}, std ${number(constant.std)}`);
    if (constant.zeros) facts.push(`${(100 * constant.zeros).toFixed(1)} % zeros`);
  }
  if (constant.stored) facts.push(`stored as ${constant.stored}`);
  if (constant.not_finite) facts.push(`${number(constant.not_finite)} not finite`);
  if (constant.sampled) facts.push(`of ${number(constant.sampled)} sampled elements`);
  made.append(...facts.map((fact) => element("div", {}, fact)));
  if (constant.values) made.append(element("code", { class: "values" }, constant.values.map(number).join(", ")));
  if (constant.channels) made.append(channelChart("By channel", constant.channels));
  if (constant.histogram) made.append(histogram(constant.histogram, `from ${number(constant.min)} to ${number(constant.max)}`));
  return made;
}

function histogram(counts, label) {
  const [width, height] = [220, 44];
  const largest = Math.max(...counts, 1);
  const step = width / counts.length;
  const made = svg("svg", { class: "histogram", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Histogram ${label}` });
  counts.forEach((count, index) => {
    const tall = count ? Math.max((count / largest) * (height - 2), 1) : 0;
    made.append(svg("rect", { x: (index * step + 0.5).toFixed(2), y: (height - tall).toFixed(2), width: (step - 1).toFixed(2), height: tall.toFixed(2) }));
  });
  made.append(title(label));
  return made;
}
