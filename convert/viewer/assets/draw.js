"use strict";
// Draws a graph: only what is in view, at the level of detail that can be seen.

const LEAST_SCALE = 0.02;
const LARGEST_SCALE = 3;
const SLICE = 40; // milliseconds of work between two looks at what the user does
const LABEL_SCALE = 0.6; // below which the types on edges are not drawn
const LEAST_PIXELS = 26; // height of an open module whose inside is drawn

const FAMILIES = [
  ["conv", /conv|linear|matmul|gemm|innerproduct|fully_connected|deconv|einsum|addmm|\bmm\b/i],
  ["act", /relu|sigmoid|tanh|gelu|silu|swish|clip|clamp|softmax|logistic|elu|erf|mish|hardsw|prelu|threshold/i],
  ["norm", /norm|scale|lrn/i],
  ["pool", /pool|reduce|mean|sum\b|argmax|topk|resize|upsample|interp/i],
  ["shape", /reshape|flatten|transpose|permute|concat|cat\b|split|slice|stride|squeeze|expand|gather|shape|pad|view|tile|pack|cast/i],
];

function familyOf(type) {
  if (/quant/i.test(type)) return "other";
  const found = FAMILIES.find(([, pattern]) => pattern.test(type));
  return found ? found[0] : "other";
}

class GraphView {
  constructor(graph, holder, listener) {
    this.graph = graph;
    this.listener = listener;
    this.view = { x: 0, y: 0, scale: 1 };
    this.drawn = new Map();
    this.selected = null;
    this.marked = new Set();
    this.heat = null;
    this.hasShapes = true;
    this.edgesLayer = svg("g", { class: "edges" });
    this.boxesLayer = svg("g", { class: "boxes" });
    this.modulesLayer = svg("g", { class: "modules" }); // open ones, below the edges in them
    this.world = svg("g", {}, this.modulesLayer, this.edgesLayer, this.boxesLayer);
    this.svg = svg("svg", { class: "graph", tabindex: "0", role: "application", "aria-label": `Graph of ${graph.title}: arrow keys move, Enter folds and unfolds` }, svg("defs", {}, arrowHead()), this.world);
    holder.append(this.svg);
    this.pointers = new Map();
    this.listen();
    new ResizeObserver(() => this.resized()).observe(this.svg);
  }

  size() {
    return { width: this.svg.clientWidth || 800, height: this.svg.clientHeight || 600 };
  }

  resized() {
    if (!this.isFitted && this.svg.clientWidth) this.fit();
    else this.redraw();
  }

  listen() {
    this.svg.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
    this.svg.addEventListener("pointerdown", (event) => this.onDown(event));
    this.svg.addEventListener("pointermove", (event) => this.onMove(event));
    for (const name of ["pointerup", "pointercancel"]) this.svg.addEventListener(name, (event) => this.onUp(event));
    this.svg.addEventListener("dblclick", (event) => {
      const item = this.itemAt(event.target);
      if (item && item.key[0] === "m") this.toggle(item);
    });
    this.svg.addEventListener("keydown", (event) => this.onKey(event));
  }

  // ---- pan and zoom

  onWheel(event) {
    event.preventDefault();
    if (event.ctrlKey || event.metaKey || !event.shiftKey) this.zoom(Math.exp(-event.deltaY * 0.0015), event.offsetX, event.offsetY);
    else this.pan(-event.deltaY, 0);
  }

  zoom(factor, x, y) {
    const { width, height } = this.size();
    const [atX, atY] = [x ?? width / 2, y ?? height / 2];
    const scale = Math.min(Math.max(this.view.scale * factor, LEAST_SCALE), LARGEST_SCALE);
    const real = scale / this.view.scale;
    this.view = { scale, x: atX - (atX - this.view.x) * real, y: atY - (atY - this.view.y) * real };
    this.redraw();
  }

  pan(x, y) {
    this.view.x += x;
    this.view.y += y;
    this.redraw();
  }

  onDown(event) {
    this.pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    this.moved = this.pointers.size > 1 ? 99 : 0;
    this.pressed = event.target;
  }

  onMove(event) {
    const last = this.pointers.get(event.pointerId);
    if (!last) return;
    const now = { x: event.offsetX, y: event.offsetY };
    if (this.moved > 4 && !this.svg.hasPointerCapture(event.pointerId)) this.svg.setPointerCapture(event.pointerId);
    this.moved += Math.abs(now.x - last.x) + Math.abs(now.y - last.y);
    const others = [...this.pointers.entries()].filter(([id]) => id !== event.pointerId);
    if (others.length) {
      const other = others[0][1];
      const before = Math.hypot(last.x - other.x, last.y - other.y);
      const after = Math.hypot(now.x - other.x, now.y - other.y);
      if (before > 0) this.zoom(after / before, (now.x + other.x) / 2, (now.y + other.y) / 2);
    } else if (this.moved > 4) {
      this.pan(now.x - last.x, now.y - last.y);
    }
    this.pointers.set(event.pointerId, now);
  }

  onUp(event) {
    this.pointers.delete(event.pointerId);
    if (event.type === "pointercancel" || this.moved > 4) return;
    const item = this.itemAt(this.pressed);
    if (item && this.pressed.closest(".fold")) this.toggle(item);
    else this.select(item);
  }

  itemAt(target) {
    const holder = target.closest ? target.closest("[data-key]") : null;
    return holder ? this.graph.item(holder.dataset.key) : null;
  }

  // ---- what is open and selected

  toggle(module, isOpen = !module.isOpen) {
    if (module.id === 0 || module.isOpen === isOpen) return;
    const before = positionOf(this.graph, module);
    module.isOpen = isOpen;
    forgetLayout(this.graph, module);
    const after = positionOf(this.graph, module);
    if (before && after) {
      this.view.x += (before.x - after.x) * this.view.scale;
      this.view.y += (before.y - after.y) * this.view.scale;
    }
    if (!isOpen && this.selected && this.graph.isIn(this.selected, module)) this.selected = module;
    this.clear();
    this.listener.toggled(this, module);
  }

  // Folds or unfolds all modules; many are laid out some at a time, so that the page stays alive.
  async toggleAll(isOpen) {
    for (const module of this.graph.modules) {
      module.isOpen = isOpen || module.id === 0;
      module.layout = null;
    }
    if (!isOpen) this.selected = null;
    this.busy = true;
    const inner = [...this.graph.modules].sort((a, b) => b.depth - a.depth);
    let until = performance.now() + SLICE;
    for (const [index, module] of (isOpen ? inner : []).entries()) {
      layoutOf(this.graph, module);
      if (performance.now() < until) continue;
      this.listener.progress(`${Math.round((100 * index) / inner.length)} % laid out`);
      await new Promise((done) => setTimeout(done));
      until = performance.now() + SLICE;
    }
    this.busy = false;
    this.listener.progress("");
    this.clear();
    this.fit();
  }

  reveal(item) {
    const folded = this.graph.ancestors(item).filter((module) => !module.isOpen);
    for (const module of folded) {
      module.isOpen = true;
      forgetLayout(this.graph, module);
    }
    if (folded.length) this.clear();
  }

  select(item, { center = false, quiet = false } = {}) {
    this.selected = item;
    if (item && center) {
      this.reveal(item);
      this.center(item);
    }
    this.clear();
    if (!quiet) this.listener.selected(this, item);
  }

  mark(items) {
    this.marked = new Set(items);
    this.clear();
  }

  center(item) {
    const box = positionOf(this.graph, item);
    const { width, height } = this.size();
    if (!box) return;
    const scale = Math.min(Math.max(this.view.scale, 0.75), 1.2);
    this.view = { scale, x: width / 2 - (box.x + box.width / 2) * scale, y: height / 2 - (box.y + Math.min(box.height, height / scale) / 2) * scale };
  }

  fit() {
    const { width, height } = this.size();
    const whole = layoutOf(this.graph, this.graph.modules[0]);
    const widthScale = (width - 24) / whole.width;
    const scale = Math.max(Math.min(widthScale, (height - 24) / whole.height, 1.15), LEAST_SCALE);
    const readable = Math.max(scale, Math.min(widthScale, 0.62));
    this.view = { scale: readable, x: (width - whole.width * readable) / 2, y: Math.max((height - whole.height * readable) / 2, 12) };
    this.isFitted = this.svg.clientWidth > 0;
    this.redraw();
  }

  fitAll() {
    const { width, height } = this.size();
    const whole = layoutOf(this.graph, this.graph.modules[0]);
    const scale = Math.max(Math.min((width - 24) / whole.width, (height - 24) / whole.height, 1.15), LEAST_SCALE);
    this.view = { scale, x: (width - whole.width * scale) / 2, y: (height - whole.height * scale) / 2 };
    this.redraw();
  }

  // ---- keyboard

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const item = this.selected;
    const actions = {
      ArrowDown: () => this.go(this.neighbour("users")),
      ArrowUp: () => this.go(this.neighbour("operands")),
      ArrowRight: () => this.go(this.sibling(1)),
      ArrowLeft: () => this.go(this.sibling(-1)),
      Enter: () => item && (item.key[0] === "m" ? this.toggle(item) : this.listener.opened(this, item)),
      " ": () => item && item.key[0] === "m" && this.toggle(item),
      Backspace: () => item && this.graph.parentOf(item)?.id > 0 && this.go(this.graph.parentOf(item)),
      Home: () => this.go(this.graph.modules[0].children[0]),
      End: () => this.go(this.graph.modules[0].children.at(-1)),
      "+": () => this.zoom(1.25),
      "=": () => this.zoom(1.25),
      "-": () => this.zoom(0.8),
      0: () => this.fitAll(),
      Escape: () => this.select(null),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  go(item) {
    if (item) this.select(item, { center: true });
  }

  neighbour(direction) {
    const item = this.selected;
    if (!item) return this.graph.modules[0].children[0];
    if (item.key[0] === "m" && item.isOpen) return direction === "users" ? item.children[0] : this.step(item, direction);
    return this.step(item, direction) || this.graph.parentOf(item) && this.step(this.graph.parentOf(item), direction);
  }

  // The next item in the same module along an edge; where an edge leaves the module, what it leads to.
  step(item, direction) {
    const parent = this.graph.parentOf(item);
    if (!parent) return null;
    const [own, other] = direction === "users" ? ["from", "to"] : ["to", "from"];
    const keys = [...parent.edges.values()].filter((edge) => edge[own] === item.key).map((edge) => edge[other]);
    const found = keys.find((key) => key[0] === "n" || key[0] === "m");
    if (found) return this.graph.item(found);
    return keys.length && parent.id !== 0 ? this.step(parent, direction) : null;
  }

  sibling(step) {
    const item = this.selected;
    if (!item) return this.graph.modules[0].children[0];
    const parent = this.graph.parentOf(item);
    return parent && parent.children[parent.children.indexOf(item) + step];
  }

  // ---- drawing

  clear() {
    for (const made of this.drawn.values()) made.remove();
    this.drawn.clear();
    this.redraw();
  }

  redraw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  draw() {
    if (this.busy) return;
    const { x, y, scale } = this.view;
    const { width, height } = this.size();
    this.world.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
    this.svg.classList.toggle("far", scale < 0.4);
    const margin = 40 / scale;
    const seen = { x: -x / scale - margin, y: -y / scale - margin, right: (width - x) / scale + margin, bottom: (height - y) / scale + margin };
    const wanted = new Map();
    this.collect(this.graph.modules[0], 0, 0, seen, scale, wanted);
    for (const [key, made] of this.drawn) {
      if (!wanted.has(key)) {
        made.remove();
        this.drawn.delete(key);
      }
    }
    for (const [key, make] of wanted) {
      if (this.drawn.has(key)) continue;
      const made = make();
      this.drawn.set(key, made);
      this.layerOf(key).append(made);
    }
  }

  layerOf(key) {
    if (key[0] === "e") return this.edgesLayer;
    return key.endsWith("+") ? this.modulesLayer : this.boxesLayer;
  }

  // Collects what is in view: keys, and functions that make the elements.
  collect(module, x, y, seen, scale, wanted) {
    const layout = layoutOf(this.graph, module);
    const isOutside = (left, top, right, bottom) => right < seen.x || left > seen.right || bottom < seen.y || top > seen.bottom;
    const nested = [];
    for (const [key, box] of layout.boxes) {
      const [left, top] = [x + box.x, y + box.y];
      if (isOutside(left, top, left + box.width, top + box.height)) continue;
      if (key[0] === "i" || key[0] === "o") {
        wanted.set(`p${module.id}:${key}`, () => this.portElement(module, key, left, top, box));
        continue;
      }
      const item = this.graph.item(key);
      const isShown = key[0] === "m" && item.isOpen && box.height * scale > LEAST_PIXELS;
      wanted.set(`${key}${isShown ? "+" : ""}`, () => (key[0] === "m" ? this.moduleElement(item, left, top, box, isShown) : this.nodeElement(item, left, top, box)));
      if (isShown) nested.push([item, left + PADDING, top + HEADER]);
    }
    for (const [item, left, top] of nested) this.collect(item, left, top, seen, scale, wanted);
    for (const edge of layout.edges) {
      const { bounds } = edge;
      if (isOutside(x + bounds.x, y + bounds.y, x + bounds.right, y + bounds.bottom)) continue;
      wanted.set(`e${edge.key}`, () => this.edgeElement(edge, x, y));
      if (edge.label && this.hasShapes && scale >= LABEL_SCALE) wanted.set(`e${edge.key}:shape`, () => text("shape", x + edge.label.x, y + edge.label.y, edge.label.words));
    }
  }

  classes(item, ...others) {
    const found = [...others];
    if (item === this.selected) found.push("selected");
    if (this.marked.has(item)) found.push("marked");
    if (item.mark) found.push(`mark-${item.mark}`);
    return found.join(" ");
  }

  heatOf(item) {
    const value = this.heat && this.heat(item);
    return value === null || value === undefined ? null : value;
  }

  nodeElement(node, x, y, box) {
    const heat = this.heatOf(node);
    const made = svg("g", { class: this.classes(node, "node", `family-${familyOf(node.type)}`), transform: `translate(${x} ${y})`, "data-key": node.key, role: "img", "aria-label": `${node.type} ${node.name}` },
      svg("rect", { class: "box", width: box.width, height: box.height, rx: 7 }),
      svg("rect", { class: "strip", width: 5, height: box.height - 12, x: 4, y: 6, rx: 2.5 }));
    if (heat !== null) made.insertBefore(svg("rect", { class: `heat heat-${heat}`, width: box.width, height: box.height, rx: 7 }), made.lastChild);
    made.append(text("type", 17, 18, shortened(node.type)), text("name", 17, 33, shortened(nodeLabel(node))));
    made.append(title(`${node.type}\n${node.name}\n${node.outputs.map((index) => this.graph.tensors[index].type).join(", ")}`));
    return made;
  }

  moduleElement(module, x, y, box, isShown) {
    const heat = isShown ? null : this.heatOf(module);
    const made = svg("g", { class: this.classes(module, "module", `depth-${module.depth % 2}`, isShown ? "open" : "folded"), transform: `translate(${x} ${y})`, "data-key": module.key, role: "button", "aria-expanded": String(module.isOpen), "aria-label": `module ${module.name}, ${module.size} nodes` },
      svg("rect", { class: "box", width: box.width, height: box.height, rx: 9 }));
    if (heat !== null) made.append(svg("rect", { class: `heat heat-${heat}`, width: box.width, height: box.height, rx: 9 }));
    const sign = svg("g", { class: "fold", transform: isShown ? "translate(8 5)" : `translate(8 ${box.height / 2 - 8})` },
      svg("rect", { width: 16, height: 16, rx: 4 }),
      svg("path", { d: module.isOpen ? "M4 8h8" : "M4 8h8M8 4v8" }));
    made.append(sign);
    const about = moduleAbout(module);
    if (isShown) made.append(text("type", 31, 17, shortened(module.title), module.className && !module.isSection ? module.className : ""));
    else made.append(text("type", 31, 18, shortened(module.title)), text("name", 31, 33, about));
    made.append(title(`${module.title}\n${about}`));
    return made;
  }

  portElement(module, key, x, y, box) {
    if (module.id !== 0) return svg("g", { class: "port", transform: `translate(${x} ${y})` }, svg("circle", { cx: box.width / 2, cy: box.height / 2, r: 3.5 }));
    const tensor = key.slice(1) === "all" ? null : this.graph.tensors[Number(key.slice(1))];
    const made = svg("g", { class: "end", transform: `translate(${x} ${y})` }, svg("rect", { class: "box", width: box.width, height: box.height, rx: box.height / 2 }));
    made.append(text("type", box.width / 2, 17, tensor ? shortened(tensor.name) : "many tensors"), text("name", box.width / 2, 30, tensor ? tensor.type : ""));
    made.append(title(tensor ? `${tensor.name}\n${tensor.type}` : ""));
    return made;
  }

  edgeElement(edge, x, y) {
    const key = this.selected && this.selected.key;
    const isNear = key && (edge.from === key || edge.to === key);
    const made = svg("g", { class: isNear ? "edge near" : "edge", transform: `translate(${x} ${y})` }, svg("path", { d: pathOf(edge.points), "marker-end": "url(#arrow)" }));
    const [first] = edge.tensors;
    const count = edge.tensors.size;
    const tensor = this.graph.tensors[first];
    made.append(title(count === 1 ? `${tensor.name}\n${tensor.type}` : `${count} tensors`));
    return made;
  }
}

function text(name, x, y, words, about = "") {
  const made = svg("text", { class: name, x, y });
  made.append(words);
  if (about) made.append(svg("tspan", { class: "name", dx: 8 }, about));
  return made;
}

function title(words) {
  return svg("title", {}, words);
}

function arrowHead() {
  return svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" }, svg("path", { class: "arrow", d: "M0 1L7 4L0 7z" }));
}

// A smooth line through the middles of the segments.
function pathOf(points) {
  const at = (point) => `${point.x.toFixed(1)} ${point.y.toFixed(1)}`;
  const last = points.at(-1);
  if (points.length === 2) {
    const middle = (points[0].y + last.y) / 2;
    return `M${at(points[0])}C${points[0].x.toFixed(1)} ${middle.toFixed(1)} ${last.x.toFixed(1)} ${middle.toFixed(1)} ${at(last)}`;
  }
  let path = `M${at(points[0])}`;
  for (let index = 1; index < points.length - 1; index++) {
    const next = points[index + 1];
    const isLast = index === points.length - 2;
    const end = isLast ? next : { x: (points[index].x + next.x) / 2, y: (points[index].y + next.y) / 2 };
    path += `Q${at(points[index])} ${at(end)}`;
  }
  return path;
}
