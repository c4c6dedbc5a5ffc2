"""Writes small models whose results have sizes that depend on the data, to the folder ``found``.

Runs with MegEngine 1.13 (Python 3.8), not with tmconvert:

    python make_found.py FOLDER

Each NAME.tm has a NAME.npz beside it with several calls: CALL_inN and CALL_outN. In the last call nothing
is found; in that of best, which MegEngine does not do with nothing, one.
"""

import sys
from pathlib import Path

import megengine as mge
import megengine.functional as F
import megengine.module as M
import numpy as np
from megengine.traced_module import trace_module


class Masks(M.Module):
    """What a mask lets through, and what is computed from it."""

    def __init__(self):
        super().__init__()
        self.conv = M.Conv2d(2, 3, 3, padding=1)
        self.linear = M.Linear(6, 4)

    def forward(self, x):
        maps = self.conv(x)
        few = maps[maps > 0.5]
        rows = maps.reshape(-1, 6)
        mask = rows[:, 0] > 0
        chosen = rows[mask]
        dense = F.relu(self.linear(chosen))
        joined = F.concat([dense, rows[:2, :4]], 0)
        first = few[0:5]
        values, places = F.cond_take(rows > 0.7, rows)
        return (
            few * 2 + 1,
            dense,
            joined,
            first,
            F.sum(chosen, 0),
            values,
            places,
            few.reshape(-1, 1),
            dense.T,
        )


class Detector(M.Module):
    """The best boxes above a threshold."""

    def forward(self, boxes, scores):
        likely = scores > 0.3
        boxes = boxes[likely]
        scores = scores[likely]
        kept = F.vision.nms(boxes, scores, 0.5, max_output=8)
        return boxes[kept], scores[kept], kept


class Rows(M.Module):
    """Masks along other axes, and written by them."""

    def forward(self, x):
        some = x[:, x[0, :, 0] > 0]
        other = x[x > 1] * 2
        y = x + 0
        y[x > 1] = other
        return some, F.sum(some, 1), F.softmax(some, 1), y, F.flatten(some, 1)


class Best(M.Module):
    """The best of what is likely, fewer where there are fewer."""

    def forward(self, scores):
        likely = scores[scores > 0.3]
        values, places = F.topk(likely, 6, descending=True)
        return values, places, F.sort(likely)[0], F.expand_dims(likely, 0) * values.reshape(-1, 1)


def rectangles(seed):
    random = np.random.default_rng(seed)
    low = random.uniform(0, 6, (40, 2))
    return np.concatenate([low, low + random.uniform(1, 5, (40, 2))], 1).astype(np.float32)


def normals(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def arrays(result):
    return [part.numpy() for part in (result if isinstance(result, tuple) else (result,))]


MODELS = {
    "masks": (Masks, [[normals(i, 2, 2, 6, 6)] for i in range(3)] + [[np.zeros((2, 2, 6, 6), np.float32)]]),
    "detector": (
        Detector,
        [[rectangles(i), normals(i + 9, 40)] for i in range(3)] + [[rectangles(5), -np.ones(40, np.float32)]],
    ),
    "best": (Best, [[normals(i, 30)] for i in range(3)] + [[np.eye(30, dtype=np.float32)[7]]]),
    "rows": (Rows, [[normals(i, 2, 5, 3)] for i in range(3)] + [[-np.ones((2, 5, 3), np.float32)]]),
}

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name, (build, calls) in MODELS.items():
        mge.random.seed(1)
        model = build()
        model.eval()
        traced = trace_module(model, *map(mge.Tensor, calls[0]))
        mge.save(traced, str(folder / f"{name}.tm"))
        saved = {}
        for i, call in enumerate(calls):
            saved.update({f"{i}_in{j}": array for j, array in enumerate(call)})
            try:
                results = arrays(traced(*map(mge.Tensor, call)))
            except Exception as error:
                print(name, i, "fails:", str(error)[:300])
                continue
            saved.update({f"{i}_out{j}": array for j, array in enumerate(results)})
            print(name, i, [array.shape for array in results])
        np.savez_compressed(folder / f"{name}.npz", **saved)
