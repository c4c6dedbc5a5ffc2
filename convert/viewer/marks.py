"""Marks of nodes that stand out: transposes, operators in float between integers, changes of type."""

from __future__ import annotations

from tmconvert.frontends.shared.view_graph import ViewGraph, ViewNode

# names in lower case without underscores
_TRANSPOSES = {"transpose", "permute", "swapaxes", "movedim", "dimshuffle"}
_TO_INTEGERS = {"quantizelinear", "quantize", "quantstub", "dynamicquantizelinear"}
_TO_FLOATS = {"dequantizelinear", "dequantize", "dequantstub"}
_INTEGERS = ("i8[", "u8[", "i16[", "u16[", "int4[", "uint4[")
_FLOATS = ("f32[", "f64[", "f16[", "bfloat16[")


def marked(graph: ViewGraph) -> ViewGraph:
    """Sets the marks of all nodes, and returns the graph.

    In a graph with integer kernels, an operator is in float where it has float results. In one with pairs of
    QuantizeLinear and DequantizeLinear, where it neither takes a dequantized tensor nor has its result
    quantized.
    """
    kinds = [_kind(node) for node in graph.nodes]
    has_kernels = any(
        _has(graph, node.outputs, _INTEGERS)
        for node, kind in zip(graph.nodes, kinds, strict=True)
        if not kind
    )
    has_pairs = "to integers" in kinds and not has_kernels
    near = _near_pairs(graph, kinds) if has_pairs else set()
    for number, (node, kind) in enumerate(zip(graph.nodes, kinds, strict=True)):
        if kind:
            node.mark = "transpose" if kind == "transpose" else "quantize"
        elif (has_kernels and _has(graph, node.outputs, _FLOATS)) or (
            has_pairs and number not in near and not _has(graph, node.outputs, _INTEGERS)
        ):
            node.mark = "float"
    return graph


def _kind(node: ViewNode) -> str:
    name = node.type.lower().replace("_", "")
    if name in _TRANSPOSES:
        return "transpose"
    if name in _TO_INTEGERS:
        return "to integers"
    return "to floats" if name in _TO_FLOATS else ""


def _near_pairs(graph: ViewGraph, kinds: list[str]) -> set[int]:
    """Returns the nodes that take a dequantized tensor, or whose result is quantized."""
    near = set()
    for number, node in enumerate(graph.nodes):
        for producer in graph.producers(node):
            if kinds[producer] == "to floats":
                near.add(number)
            if kinds[number] == "to integers":
                near.add(producer)
    return near


def _has(graph: ViewGraph, indices: list[int], starts: tuple[str, ...]) -> bool:
    return any(graph.tensors[index].type.startswith(starts) for index in indices)
