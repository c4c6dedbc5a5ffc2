"""Pooling over one or three axes, expressed by pooling over two."""

from __future__ import annotations

from typing import Any

# what an axis that is not pooled has in each list of the windows
NEUTRAL = {"kernel_size": 1, "stride": 1, "padding": 0, "dilation": 1}


def is_one_element(kernel_size: list[int], stride: list[int], padding: list[int], **_: Any) -> bool:
    """Whether each window covers exactly one element, and each element exactly one window."""
    return all(size == 1 for size in (*kernel_size, *stride)) and not any(padding)


def planar(g: Any, op: str, x: Any, windows: dict[str, list[int]], first: Any, second: Any) -> Any:
    """Pools ``x`` [N, C, L] or [N, C, D, H, W] by ``op``, which pools over two axes.

    Three axes are pooled in two steps, H and W, then D; ``first`` and ``second`` are the attributes
    of the steps that do not belong to an axis.
    """
    batch, channels, *spatial = g.type(x).shape
    if len(spatial) == 1:
        return _flat(g, op, x, windows, (batch, channels, 1, spatial[0]), first)
    planes = {name: values[1:] for name, values in windows.items()}
    depth = {name: values[:1] for name, values in windows.items()}
    x = g.call("aten::reshape", x, [batch, channels * spatial[0], *spatial[1:]])
    x = g.call(op, x, **planes, **first)
    height, width = g.type(x).shape[2:]
    rows = {name: [*values, NEUTRAL[name]] for name, values in depth.items()}
    x = g.call("aten::reshape", x, [batch, channels, spatial[0], height * width])
    x = g.call(op, x, **rows, **second)
    return g.call("aten::reshape", x, [batch, channels, g.type(x).shape[2], height, width])


def _flat(g: Any, op: str, x: Any, windows: dict[str, list[int]], shape: Any, attributes: Any) -> Any:
    rows = {name: [NEUTRAL[name], *values] for name, values in windows.items()}
    result = g.call(op, g.call("aten::reshape", x, list(shape)), **rows, **attributes)
    return g.call("aten::reshape", result, [*shape[:2], g.type(result).shape[3]])
