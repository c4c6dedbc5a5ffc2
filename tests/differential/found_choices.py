"""What a random program may find: elements that a mask lets through, boxes; as many as the data says.

A ``final`` choice is not computed with further: what the other choices demand of sizes is not said of these.
"""

import megengine as mge
import megengine.functional as F
import numpy as np
from chosen import choice, step


def above(draw, x):
    """A mask of ``x`` that lets something through, and not all if it can."""
    values = np.unique(x.numpy())
    bound = float(values[draw.below(max(len(values) - 1, 1))])
    return (lambda v: v > bound) if len(values) > 1 else (lambda v: v >= bound)


@choice(weight=2, exact=True, needs_exact=True, kinds="fi", ranks=range(1, 5), final=True)
def masked(draw, x):
    mask, axis = above(draw, x), draw.below(x.ndim)
    first = (slice(None),) * axis
    corner = (0,) * axis + (slice(None),) + (0,) * (x.ndim - axis - 1)
    forms = [
        lambda v: v[mask(v)],
        lambda v: v[mask(v)] * 2 - v[mask(v)],
        lambda v: F.flatten(v)[mask(F.flatten(v))].reshape(-1, 1),
        lambda v: list(F.cond_take(mask(v), v)),
    ]
    if bool(mask(x)[corner].numpy().any()):
        picked = lambda v: v[(*first, mask(v)[corner])]  # noqa: E731
        forms += [picked, lambda v: F.sum(picked(v), axis), lambda v: F.concat([picked(v), v], axis)]
        forms.append(lambda v: F.relu(picked(v)) if np.dtype(v.dtype).kind == "f" else picked(v))
    return step(draw.any(forms), draw.index(x))


@choice(weight=2, exact=True, needs_exact=True, kinds="f", ranks=range(1, 5))
def summed(draw, x):
    """Found elements, of which something of a known size remains."""
    mask = above(draw, x)
    forms = [
        lambda v: F.sum(v[mask(v)]),
        lambda v: F.max(v[mask(v)]),
        lambda v: F.min(F.cond_take(mask(v), v)[0]),
        lambda v: F.sum(v[mask(v)].reshape(-1, 1), 0),
    ]

    def doubled(v):
        copy = v + 0
        copy[mask(v)] = v[mask(v)] * 2
        return copy

    return step(draw.any([*forms, doubled]), draw.index(x))


@choice(weight=2, exact=True, needs_exact=True, ranks=[2], final=True)
def suppressed(draw, x):
    """Boxes from corners and sizes, all distinct scores."""
    if x.shape[1] < 4 or len(np.unique(x.numpy()[:, 0])) < x.shape[0]:
        return None
    threshold, most = draw.any([0.1, 0.3, 0.6]), draw.any([None, None, 1, 3])

    def kept(v):
        corners = v[:, :2]
        boxes = F.concat([corners, corners + F.abs(v[:, 2:4]) + 0.5], 1)
        found = F.vision.nms(boxes, v[:, 0], threshold, most)
        return [found, boxes[found], v[found]]

    return step(kept, draw.index(x))


@choice(exact=True, needs_exact=True, ranks=[1], final=True)
def found_by_place(draw, x):
    picks = mge.Tensor(np.array([draw.below(x.shape[0]) for _ in range(3)], "int32"))
    mask = above(draw, x)
    return step(lambda v: [v[picks][mask(v[picks])], F.cond_take(mask(v), v)[1]], draw.index(x))
