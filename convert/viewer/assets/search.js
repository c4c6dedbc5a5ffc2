"use strict";
// Search over nodes, modules and tensors; every word must occur.

const searchInput = document.getElementById("search");
const resultList = document.getElementById("results");
const MOST_RESULTS = 60;
let searchable = null;
let results = [];
let chosen = -1;

function entries() {
  if (searchable) return searchable;
  searchable = [];
  for (const graph of graphs) {
    for (const module of graph.modules) {
      if (module.id > 0 && !module.isSection) searchable.push({ graph, item: module, label: module.title, about: moduleAbout(module), text: `${module.name} ${module.className} module`.toLowerCase() });
    }
    for (const node of graph.nodes) {
      const tensors = node.outputs.map((index) => graph.tensors[index].name).join(" ");
      const own = node.inputs.filter((index) => index >= 0 && graph.tensors[index].producer < 0).map((index) => graph.tensors[index].name).join(" ");
      searchable.push({ graph, item: node, label: node.type, about: node.name, text: `${node.type} ${node.name} ${node.path} ${tensors} ${own} ${node.source}`.toLowerCase() });
    }
  }
  return searchable;
}

function search(words) {
  const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
  results = parts.length ? entries().filter((entry) => parts.every((part) => entry.text.includes(part))) : [];
  chosen = results.length ? 0 : -1;
  const shown = results.slice(0, MOST_RESULTS).map((entry, index) => element("li", { role: "option", id: `result${index}`, "aria-selected": String(index === chosen), onpointerdown: (event) => { event.preventDefault(); choose(index); } },
    element("b", {}, entry.label), element("span", {}, entry.about), graphs.length > 1 ? element("i", {}, entry.graph.title) : null));
  if (parts.length) shown.push(element("li", { class: "total", role: "presentation" }, results.length === 0 ? "nothing found" : results.length > MOST_RESULTS ? `${MOST_RESULTS} of ${number(results.length)}` : `${results.length} found`));
  resultList.replaceChildren(...shown);
  resultList.hidden = !parts.length;
  searchInput.setAttribute("aria-expanded", String(!resultList.hidden));
  for (const view of views) view.mark(results.filter((entry) => entry.graph === view.graph).map((entry) => entry.item));
}

function searchFor(words) {
  searchInput.value = words;
  search(words);
  searchInput.focus();
}

function choose(index) {
  const found = results[index];
  if (!found) return;
  resultList.hidden = true;
  searchInput.setAttribute("aria-expanded", "false");
  openItem(found.graph, found.item);
}

searchInput.addEventListener("input", () => search(searchInput.value));
searchInput.addEventListener("focus", () => { if (searchInput.value) search(searchInput.value); });
searchInput.addEventListener("blur", () => { resultList.hidden = true; });
searchInput.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    const shown = Math.min(results.length, MOST_RESULTS);
    if (!shown) return;
    chosen = (chosen + (event.key === "ArrowDown" ? 1 : shown - 1)) % shown;
    [...resultList.children].forEach((each, index) => each.setAttribute("aria-selected", String(index === chosen)));
    searchInput.setAttribute("aria-activedescendant", `result${chosen}`);
    resultList.children[chosen].scrollIntoView({ block: "nearest" });
  } else if (event.key === "Enter") {
    choose(chosen);
  } else if (event.key === "Escape") {
    searchInput.value = "";
    search("");
    views[0]?.svg.focus();
  }
});
