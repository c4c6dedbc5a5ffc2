"use strict";
// Lays out one module at a time with dagre; an open module is a box in the layout of the module around it.

const NODE_HEIGHT = 42;
const HEADER = 26; // of an open module
const PADDING = 14;
const MOST_LETTERS = 30;
const LABEL_HEIGHT = 13;

const pen = document.createElement("canvas").getContext("2d");
const FAMILY = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const FONTS = { type: `600 13px ${FAMILY}`, name: `11.5px ${FAMILY}`, shape: `11px ${FAMILY}` };
const widths = new Map();

// Returns the width of a text in one of the fonts of the drawing.
function textWidth(text, font) {
  const key = `${font}${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    pen.font = FONTS[font];
    width = pen.measureText(text).width;
    widths.set(key, width);
  }
  return width;
}

function shortened(text) {
  if (text.length <= MOST_LETTERS) return text;
  return `${text.slice(0, 13)}…${text.slice(-16)}`;
}

function boxOf(graph, item) {
  if (item.key[0] === "m") {
    if (item.isOpen) {
      const inner = layoutOf(graph, item);
      const about = item.className && !item.isSection ? textWidth(item.className, "name") + 8 : 0;
      const header = textWidth(shortened(item.title), "type") + about + 46;
      return { width: Math.max(inner.width + 2 * PADDING, header), height: inner.height + HEADER + PADDING };
    }
    const words = Math.max(textWidth(shortened(item.title), "type"), textWidth(moduleAbout(item), "name"));
    return { width: Math.max(words + 44, 120), height: NODE_HEIGHT };
  }
  const words = Math.max(textWidth(shortened(item.type), "type"), textWidth(shortened(nodeLabel(item)), "name"));
  return { width: Math.max(words + 30, 92), height: NODE_HEIGHT };
}

// What the box of a node shows: its own name, or its module where it has only that of its type.
function nodeLabel(node) {
  const parts = node.name.split("/").filter(Boolean);
  const isType = parts.length > 1 && parts.at(-1).replace(/_\d+$/, "") === node.type;
  return (isType && node.path) || parts.at(isType ? -2 : -1) || node.name;
}

function moduleAbout(module) {
  const about = module.className && !module.isSection ? `${module.className}, ` : "";
  return `${about}${module.size} ${module.size === 1 ? "node" : "nodes"}`;
}

function portBox(graph, module, port) {
  if (module.id !== 0) return { width: 10, height: 10 };
  const label = port === "all" ? "many tensors" : graph.tensors[port].name;
  const type = port === "all" ? "" : graph.tensors[port].type;
  return { width: Math.max(textWidth(shortened(label), "type"), textWidth(type, "name")) + 36, height: 38 };
}

// Returns the layout of the inside of a module: boxes and edges, from its own corner.
function layoutOf(graph, module) {
  if (module.layout) return module.layout;
  const items = [
    ...module.children.map((child) => [child.key, boxOf(graph, child)]),
    ...module.inPorts.map((port) => [`i${port}`, portBox(graph, module, port)]),
    ...module.outPorts.map((port) => [`o${port}`, portBox(graph, module, port)]),
  ];
  const indices = new Map(items.map(([key], index) => [key, index]));
  const links = [...module.edges.values()];
  const plan = geometry(items.map(([, box]) => [Math.ceil(box.width / 8) * 8, box.height]), links.map((each) => [indices.get(each.from), indices.get(each.to)]));
  const boxes = new Map(items.map(([key], index) => [key, plan.boxes[index]]));
  let { width } = plan;
  const labels = new Labels(graph, [...boxes.values()], plan.lines);
  const edges = links.map((each, index) => {
    const points = plan.lines[index].map(({ x, y }) => ({ x, y }));
    attach(graph, boxes, each, points);
    for (const point of points) width = Math.max(width, point.x + 6);
    const label = labels.place(each, points);
    if (label) width = Math.max(width, label.right);
    return { ...each, key: `${module.id}:${each.from}>${each.to}`, points, bounds: boundsOf(points), label };
  });
  module.layout = { width, height: plan.height, boxes, edges };
  return module.layout;
}

// Places the types of tensors next to their edges: a tensor's once, and only where nothing else is drawn.
class Labels {
  constructor(graph, boxes, lines) {
    this.graph = graph;
    this.taken = boxes;
    this.lines = lines;
    this.placed = new Set();
  }

  place(edge, points) {
    const [index] = edge.tensors;
    // ports have labels of their own, or those of the edges around their module
    if (edge.tensors.size > 1 || this.placed.has(index) || /[io]/.test(edge.from[0] + edge.to[0])) return null;
    const words = shapeLabel(this.graph, index);
    if (!words) return null;
    const isStraight = points.every((point) => Math.abs(point.x - points[0].x) < 4);
    const ends = isStraight ? [points[0], points.at(-1)] : points;
    for (const [from, to] of ends.slice(1).map((point, place) => [ends[place], point])) {
      if (to.y - from.y < LABEL_HEIGHT) continue;
      const box = { x: (from.x + to.x) / 2 + 5, y: (from.y + to.y - LABEL_HEIGHT) / 2, width: textWidth(words, "shape"), height: LABEL_HEIGHT };
      if (this.taken.some((other) => isOverlapping(box, other)) || this.isCrossed(box)) continue;
      this.taken.push(box);
      this.placed.add(index);
      return { words, x: box.x, y: box.y + LABEL_HEIGHT - 3, right: box.x + box.width };
    }
    return null;
  }

  isCrossed(box) {
    return this.lines.some((points) => points.some((point, place) => place > 0 && isOverlapping(box, boundsBox(points[place - 1], point))));
  }
}

function boundsBox(one, other) {
  return { x: Math.min(one.x, other.x), y: Math.min(one.y, other.y), width: Math.abs(one.x - other.x), height: Math.abs(one.y - other.y) };
}

function isOverlapping(one, other) {
  return one.x < other.x + other.width && other.x < one.x + one.width && one.y < other.y + other.height && other.y < one.y + one.height;
}

// Returns the shape of a tensor, after its type where the operator that computes it changes the type.
function shapeLabel(graph, index) {
  const { type, producer } = graph.tensors[index];
  if (!type.includes("[")) return "";
  const [dtype, shape] = type.split("[");
  const node = graph.nodes[producer];
  const operands = node ? node.inputs.filter((input) => input >= 0 && !graph.tensors[input].constant) : [];
  const isChanged = operands.length > 0 && operands.every((input) => graph.tensors[input].type.split("[")[0] !== dtype);
  const words = shape !== "?]" ? shape.slice(0, -1).split(",").filter(Boolean).join("×") : "";
  return shortened(isChanged ? `${dtype} ${words}`.trim() : words);
}

const plans = new Map();

// Lays out boxes of given sizes. Models repeat their blocks: equal ones are laid out once.
function geometry(sizes, links) {
  const key = JSON.stringify([sizes, links]);
  const known = plans.get(key);
  if (known) return known;
  const drawn = new dagre.graphlib.Graph();
  drawn.setGraph({ rankdir: "TB", nodesep: 22, ranksep: 30, edgesep: 12, marginx: 6, marginy: 6, ranker: sizes.length < 120 ? "network-simplex" : "longest-path" });
  drawn.setDefaultEdgeLabel(() => ({}));
  sizes.forEach(([width, height], index) => drawn.setNode(String(index), { width, height }));
  for (const [from, to] of links) drawn.setEdge(String(from), String(to));
  dagre.layout(drawn);
  const plan = { boxes: [], lines: [], width: 0, height: 0 };
  sizes.forEach(([width, height], index) => {
    const { x, y } = drawn.node(String(index));
    plan.boxes.push({ x: x - width / 2, y: y - height / 2, width, height });
    plan.width = Math.max(plan.width, x + width / 2 + 6);
    plan.height = Math.max(plan.height, y + height / 2 + 6);
  });
  for (const [from, to] of links) plan.lines.push(drawn.edge(String(from), String(to)).points);
  plans.set(key, plan);
  return plan;
}

// Moves the ends of an edge to the middle of a box, or to the port of an open module.
function attach(graph, boxes, edge, points) {
  const upper = boxes.get(edge.from);
  const lower = boxes.get(edge.to);
  const isDown = upper.y <= lower.y;
  const start = isDown ? points[0] : points.at(-1);
  const end = isDown ? points.at(-1) : points[0];
  start.y = upper.y + upper.height;
  end.y = lower.y;
  start.x = portPosition(graph, edge.from, "o", edge, upper) ?? start.x;
  end.x = portPosition(graph, edge.to, "i", edge, lower) ?? end.x;
  if (!isDown) points.reverse();
}

function portPosition(graph, key, side, edge, box) {
  if (key[0] !== "m" || !graph.item(key).isOpen) return null;
  const inner = layoutOf(graph, graph.item(key));
  const [tensor] = edge.tensors;
  const port = inner.boxes.get(`${side}${tensor}`) || inner.boxes.get(`${side}all`);
  return port ? box.x + PADDING + port.x + port.width / 2 : null;
}

function boundsOf(points) {
  const xs = points.map((point) => point.x);
  const ys = points.map((point) => point.y);
  return { x: Math.min(...xs), y: Math.min(...ys), right: Math.max(...xs), bottom: Math.max(...ys) };
}

function forgetLayout(graph, module) {
  for (let each = module; each; each = graph.parentOf(each)) each.layout = null;
}

// Returns the position of an item in the whole drawing; null where a module around it is folded.
function positionOf(graph, item) {
  let x = 0;
  let y = 0;
  let box = null;
  for (let each = item, parent = graph.parentOf(item); parent; each = parent, parent = graph.parentOf(parent)) {
    if (!parent.isOpen) return null;
    const found = layoutOf(graph, parent).boxes.get(each.key);
    if (box === null) box = found;
    x += found.x + (parent.id === 0 ? 0 : PADDING);
    y += found.y + (parent.id === 0 ? 0 : HEADER);
  }
  return box && { x, y, width: box.width, height: box.height };
}
