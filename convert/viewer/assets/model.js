"use strict";
// Reads the document: graphs with their modules, and the edges that each module shows between its children.

const page = JSON.parse(document.getElementById("document").textContent);
const DIFFERENCES = new Set(["removed", "added", "changed"]); // marks of nodes that their modules show, too
const MOST_PORTS = 10; // of a module, drawn one by one

class Graph {
  constructor(record) {
    Object.assign(this, record);
    this.tensors = record.tensors.map(([name, type], index) => ({
      index, name, type, producer: -1, users: [],
      constant: record.constants[index], qparams: record.qparams[index],
    }));
    this.modules = record.modules.map(([name, parent, className, isSection], id) => ({
      id, key: `m${id}`, name, parent, className, isSection: Boolean(isSection), isOpen: id === 0,
      children: [], edges: new Map(), inPorts: [], outPorts: [], size: 0, depth: 0, mark: "",
    }));
    this.nodes = record.nodes.map((each, id) => ({
      id, key: `n${id}`, name: each.n, type: each.t, parent: each.m, inputs: each.i, outputs: each.o,
      path: each.p || "", attributes: each.a || {}, source: each.s || "", mark: each.k || "",
      sources: each.f || [], computedBy: [],
    }));
    this.byTensor = new Map();
    this.link();
    this.findEdges();
  }

  link() {
    for (const module of this.modules) {
      const around = this.modules[module.parent];
      module.depth = around ? around.depth + 1 : 0;
      module.title = around && around.id > 0 && /^\d+(\.|$)/.test(module.name) ? `${around.title}.${module.name}` : module.name;
    }
    const placed = new Set();
    for (const node of this.nodes) {
      let child = node;
      for (let id = node.parent; id >= 0; id = this.modules[id].parent) {
        const parent = this.modules[id];
        parent.size += 1;
        if (id > 0 && DIFFERENCES.has(node.mark)) parent.mark = "changed";
        if (child === node || !placed.has(child)) parent.children.push(child);
        placed.add(child);
        child = parent;
      }
      for (const index of node.outputs) {
        this.tensors[index].producer = node.id;
        this.byTensor.set(this.tensors[index].name, node);
      }
      for (const index of new Set(node.inputs)) if (index >= 0) this.tensors[index].users.push(node.id);
    }
  }

  parentOf(item) {
    return item.parent >= 0 ? this.modules[item.parent] : null;
  }

  item(key) {
    return key[0] === "n" ? this.nodes[Number(key.slice(1))] : this.modules[Number(key.slice(1))];
  }

  ancestors(item) {
    const found = [];
    for (let each = this.parentOf(item); each; each = this.parentOf(each)) found.push(each);
    return found;
  }

  isIn(item, module) {
    for (let each = this.parentOf(item); each; each = this.parentOf(each)) if (each === module) return true;
    return false;
  }

  findEdges() {
    const root = this.modules[0];
    for (const index of this.inputs) {
      root.inPorts.push(index);
      for (const user of this.tensors[index].users) this.enter(root, index, this.nodes[user]);
    }
    for (const tensor of this.tensors) {
      if (tensor.producer < 0) continue;
      for (const user of tensor.users) this.addEdge(tensor.index, this.nodes[tensor.producer], this.nodes[user]);
    }
    for (const index of this.outputs) {
      root.outPorts.push(index);
      if (this.tensors[index].producer >= 0) this.leave(root, index, this.nodes[this.tensors[index].producer]);
      else if (this.inputs.includes(index)) this.edge(root, `i${index}`, `o${index}`, index);
    }
    for (const module of this.modules) this.mergePorts(module);
  }

  // Adds the edge of a tensor to each module that it crosses.
  addEdge(tensor, from, to) {
    const upper = [from, ...this.ancestors(from)];
    const lower = [to, ...this.ancestors(to)];
    while (upper.length > 1 && lower.length > 1 && upper.at(-2) === lower.at(-2)) {
      upper.pop();
      lower.pop();
    }
    const common = upper.at(-1);
    this.edge(common, upper.at(-2).key, lower.at(-2).key, tensor);
    for (let level = upper.length - 2; level > 0; level--) {
      this.port(upper[level], "outPorts", tensor);
      this.edge(upper[level], upper[level - 1].key, `o${tensor}`, tensor);
    }
    for (let level = lower.length - 2; level > 0; level--) {
      this.port(lower[level], "inPorts", tensor);
      this.edge(lower[level], `i${tensor}`, lower[level - 1].key, tensor);
    }
  }

  enter(root, tensor, to) {
    const path = [to, ...this.ancestors(to)];
    for (let level = path.length - 1; level > 0; level--) {
      if (path[level] !== root) this.port(path[level], "inPorts", tensor);
      this.edge(path[level], `i${tensor}`, path[level - 1].key, tensor);
    }
  }

  leave(root, tensor, from) {
    const path = [from, ...this.ancestors(from)];
    for (let level = path.length - 1; level > 0; level--) {
      if (path[level] !== root) this.port(path[level], "outPorts", tensor);
      this.edge(path[level], path[level - 1].key, `o${tensor}`, tensor);
    }
  }

  port(module, side, tensor) {
    const seen = `${side}Seen`;
    module[seen] = module[seen] || new Set();
    if (module[seen].has(tensor)) return;
    module[seen].add(tensor);
    module[side].push(tensor);
  }

  edge(module, from, to, tensor) {
    if (from === to) return;
    const key = `${from}>${to}`;
    const known = module.edges.get(key);
    if (known) known.tensors.add(tensor);
    else module.edges.set(key, { from, to, tensors: new Set([tensor]) });
  }

  // A module with many inputs or outputs has one port for all of them.
  mergePorts(module) {
    for (const [side, letter] of [["inPorts", "i"], ["outPorts", "o"]]) {
      if (module[side].length <= MOST_PORTS) continue;
      const edges = [...module.edges.values()];
      module.edges = new Map();
      for (const each of edges) {
        const all = `${letter}all`;
        const from = letter === "i" && each.from[0] === "i" ? all : each.from;
        const to = letter === "o" && each.to[0] === "o" ? all : each.to;
        for (const tensor of each.tensors) this.edge(module, from, to, tensor);
      }
      module[`${side}Count`] = module[side].length;
      module[side] = ["all"];
    }
  }
}

const graphs = page.graphs.map((record) => new Graph(record));
// The written file is the last graph; ``sources`` of its nodes are indices of nodes of the first one.
if (graphs.length === 2) {
  for (const node of graphs[1].nodes) {
    for (const source of node.sources) graphs[0].nodes[source].computedBy.push(node.id);
  }
}

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function number(value) {
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return String(Number(value.toPrecision(4)));
}

function byteSize(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  const units = ["kB", "MB", "GB"];
  let value = bytes;
  let unit = -1;
  while (value >= 1000 && unit < 2) {
    value /= 1000;
    unit += 1;
  }
  return `${Number(value.toPrecision(3))} ${units[unit]}`;
}
