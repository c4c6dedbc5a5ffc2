"""Programs with Python loops, one a row, which may be continued.

``control_flow.py --loops`` runs them at many sizes and on other data.

A row has a name and statements. One that ends with a colon indents those after it, ``.`` ends its block, and
the last one is returned. ``OVER_SIZES`` take one float32 [n, 4, 3], where n is open, and ``ON_DATA`` one
float32 [5, 4]; these end on data. ``names`` returns the modules that they call.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

OVER_SIZES = """
recurrent | h, o = x.new_zeros(4, 5), []; for t in range(len(x)):; h = cell(x[t], h); o.append(head(h)); .;
  torch.stack(o), h
second axis | x = x.transpose(0, 1); h, o = torch.zeros(x.size(0), 5), []; for t in range(x.size(1)):; h =
  cell(x[:, t], h); o.append(h); .; head(torch.stack(o, dim=1))
backwards | h, o = x.new_zeros(4, 5), []; for t in reversed(range(len(x))):; h = cell(x[t], h); o.insert(0,
  h); .; torch.stack(o)
downwards | h, o, n = x.new_zeros(4, 5), [], len(x); for t in range(n):; h = cell(x[n - 1 - t], h);
  o.append(h); .; torch.stack(o[::-1])
down to zero | h, o = x[0] * 0, []; for t in range(len(x) - 1, -1, -1):; h = h * 0.5 + x[t]; o.append(h); .;
  torch.stack(o)
both directions | h = g = x.new_zeros(4, 5); a, b = [], []; for t in range(len(x)):; h = cell(x[t], h);
  a.append(h); .; for t in range(len(x) - 1, -1, -1):; g = cell(x[t], g); b.append(g); .;
  torch.cat([torch.stack(a), torch.stack(b[::-1])], -1)
last state only | h = x.new_zeros(4, 5); for row in x:; h = cell(row, h); .; head(h)
long short term | h = c = x.new_zeros(4, 5); o = []; for row in x.unbind(0):; h, c = lstm(row, (h, c));
  o.append(h); .; torch.stack(o), c
two layers | h, o = [x.new_zeros(4, 5) for _ in range(2)], []; for row in x:; for i, each in enumerate((cell,
  cell2)):; row = h[i] = each(row, h[i]); .; o.append(row); .; torch.stack(o)
layer by layer | rows = list(x.unbind(0)); for each in (cell, cell2):; h, o = x.new_zeros(4, 5), []; for row
  in rows:; h = each(row, h); o.append(h); .; rows = o; .; torch.stack(rows)
in a submodule | out, h = step(x); head(out), h
twice in a round | h, o = x.new_zeros(4, 5), []; for row in x:; h = cell(row, h); h = cell(row * 2, h);
  o.append(h); .; torch.stack(o)
static inside | h, o = x.new_zeros(4, 5), []; for row in x:; for _ in range(4):; h = cell(row, h); .;
  o.append(h); .; torch.stack(o)
attending | h, o, keys = x.new_zeros(4, 5), [], torch.cat([x, x[..., :2]], -1); for row in x:; h = cell(row,
  h); a = torch.softmax((keys * h).sum(-1), 0); o.append((a[..., None] * keys).sum(0)); .; torch.stack(o)
teacher | h, o = x.new_zeros(4, 5), []; for t in range(1, len(x)):; h = cell(x[t - 1], h); o.append(head(h) -
  x[t, :, :2]); .; torch.stack(o)
masked | h, o, m = x.new_zeros(4, 5), [], x.sum(-1, keepdim=True) > 0; for t in range(len(x)):; h =
  torch.where(m[t], cell(x[t], h), h); o.append(h); .; torch.stack(o)
selective scan | a, b, s, o = torch.sigmoid(x), x * 0.5, x.new_zeros(4, 3), []; for t in range(len(x)):; s =
  a[t] * s + b[t]; o.append(s * x[t]); .; torch.stack(o, 0)
state matrix | s, o = torch.zeros(4, 3, 3), []; for t in range(x.size(0)):; s = 0.9 * s + x[t].unsqueeze(-1) *
  x[t].unsqueeze(-2); o.append(torch.einsum("bij,bj->bi", s, x[t])); .; torch.stack(o, 1)
product | p, o = torch.ones(4, 3), []; for row in x:; p = p * (row.tanh() + 1); o.append(p); .; torch.stack(o)
maximum | b, o = x[0], [x[0]]; for t in range(1, len(x)):; b = torch.maximum(b, x[t]); o.append(b); .;
  torch.stack(o)
from zero | s = 0; for row in x:; s = s + row.exp(); .; s
python's sum | sum(row * row for row in x)
fibonacci | a, b = x[0], x[0] + 1; for t in range(len(x)):; a, b = b, (a + b) * 0.5 + x[t]; .; a, b
smoothing | l, s, o = x[0], x[0] * 0, []; for t in range(len(x)):; k = l; l = 0.6 * x[t] + 0.4 * (l + s); s =
  0.3 * (l - k) + 0.7 * s; o.append(l + s); .; torch.stack(o)
power iteration | f = x.flatten(1); v = torch.ones(f.shape[1]); for _ in range(len(x)):; v = f.T @ (f @ v); v
  = v / v.norm(); .; v
no state | torch.stack([row.softmax(-1) * 2 for row in x])
joined along an axis | torch.cat([x[t] * 2 for t in range(len(x))], dim=0)
joined last | torch.cat([x[t].relu() for t in range(len(x))], dim=-1)
several in a round | o = []; for row in x:; o.append(row.sin()); o.append(row.cos()); .; torch.stack(o)
several joined | o = []; for row in x:; o += [row.sin(), row[:2].cos()]; .; torch.cat(o, 0)
first in the list | s = x.mean(0); o = [s]; for row in x:; s = s * 0.5 + row; o.append(s); .; torch.stack(o)
without the first | s, o = x.mean(0), []; for row in x:; s = s * 0.5 + row; o.append(s); .; torch.stack(o[1:])
last and first | o = [row.exp() for row in x]; o[-1] - o[0]
differences | o = []; for t in range(len(x) - 1):; o.append(x[t + 1] - x[t]); .; torch.stack(o)
windows | o = []; for t in range(len(x) - 2):; o.append(x[t : t + 3].mean(0)); .; torch.stack(o)
pieces | o = []; for t in range(0, len(x), 1):; o.append(x[t : t + 1] * 2); .; torch.cat(o)
every second | s = x[0] * 0; for t in range(0, len(x), 2):; s = s * 0.5 + x[t]; .; s
chunks of two | s, o = 0, []; x = torch.cat([x, x * 2], 1).flatten(0, 1); for part in x.split(8, 0):; s = s +
  part.sum(0); o.append(s); .; torch.stack(o)
split by one | s = x[:1] * 0; for part in x.split(1):; s = s * 0.5 + part; .; s
two lists | s = torch.zeros(4, 3); for a, b in zip(x, x.flip(0), strict=True):; s = (s + a * b).tanh(); .; s
enumerated | s = torch.zeros(4, 3); for t, row in enumerate(x):; s = s * 0.9 + row * t; .; s
counter as factor | torch.stack([x[t] * t for t in range(len(x))])
counter divided | torch.stack([x[t] * (t / 10) for t in range(len(x))])
counter plus one | m = torch.zeros(4, 3); for t in range(len(x)):; m = m + (x[t] - m) / (t + 1); .; m
counter as tensor | torch.stack([x[t] + torch.tensor(float(t)) for t in range(len(x))])
counter compared | r, o = torch.arange(len(x)), []; for t in range(len(x)):; o.append((x * (r <= t)[:, None,
  None]).sum(0)); .; torch.stack(o)
counter squared | torch.stack([x[t] * t**2 for t in range(len(x))])
over the size | n = len(x); torch.stack([x[t] * (t / n) for t in range(n)])
positions | s = torch.zeros(4, 3); for t in range(len(x)):; s = (s + x[t] + table3.weight[t]).tanh(); .; s
positions looked up | s = torch.zeros(4, 3); for t in range(len(x)):; s = (s + x[t] +
  table3(torch.tensor([t]))).tanh(); .; s
odd and even | s = torch.zeros(4, 3); for t in range(len(x)):; s = s * 0.5 + x[t] if t % 2 == 0 else s - x[t];
  .; s
after the first | s, o = torch.zeros(4, 3), []; for t in range(len(x)):; s = s * 0.5 + x[t] if t > 0 else
  x[t].exp(); o.append(s); .; torch.stack(o)
before the last | s, n = torch.zeros(4, 3), len(x); for t in range(n):; s = s * 0.5 + x[t]; s = s.tanh() if t
  < n - 1 else s; .; s
while below | s, t = torch.zeros(4, 3), 0; while t < len(x):; s = s * 0.5 + x[t]; t += 1; .; s
half the rows | s = torch.zeros(4, 3); for t in range(len(x) // 2):; s = s * 0.5 + x[2 * t] - x[2 * t + 1]; .;
  s
rows written | o = torch.zeros_like(x); for t in range(len(x)):; o[t] = x[t].exp(); .; o
columns written | x = x.transpose(0, 1); o, s = x.new_zeros(x.shape[0], x.shape[1], 3), torch.zeros(4, 3); for
  t in range(x.shape[1]):; s = s * 0.5 + x[:, t]; o[:, t] = s; .; o
from the row before | o = torch.zeros(len(x) + 1, 4, 3); for t in range(len(x)):; o[t + 1] = o[t] * 0.5 +
  x[t]; .; o
rows added to | o = x.clone(); for t in range(1, len(x)):; o[t] += o[t - 1]; .; o
elements written | o = torch.zeros(len(x), 4); for t in range(len(x)):; o[t, 1] = x[t, 0, 0]; o[t, 2:4] = x[t,
  :2, 1]; .; o
growing | o = x[:1]; for t in range(1, len(x)):; o = torch.cat([o, (x[t] * 2)[None]]); .; o
growing and read | o = x[:1]; for t in range(1, len(x)):; o = torch.cat([o, (o.mean(0) + x[t])[None]]); .; o
prefixes | torch.stack([x[: t + 1].mean(0) for t in range(len(x))])
branch in a loop | s = torch.zeros(4, 3); for row in x:; s = s * 0.5 + row if row.sum() > 0 else s - row; .; s
skipped rows | s = torch.zeros(4, 3); for row in x:; if row.sum() > 0:; continue; .; s = s + row; .; s
static rounds | s = torch.zeros(4); for row in x:; for j in range(3):; s = s * 0.5 + row[:, j]; .; .; s
same size | s = torch.zeros(4, 3); for i in range(len(x)):; for j in range(len(x)):; s = (s + x[i] *
  x[j]).tanh(); .; .; s
rows of rows | o = []; for a in x:; r = []; for b in x:; r.append((a - b).abs().sum()); .;
  o.append(torch.stack(r)); .; torch.stack(o)
triangle | s = torch.zeros(4, 3); for i in range(len(x)):; for j in range(i):; s = (s + x[i] * x[j]).tanh();
  .; .; s
one after the other | o, s = [], torch.zeros(4, 3); for row in x:; s = (s + row).tanh(); o.append(s); .; p =
  torch.zeros(4, 3); for each in reversed(o):; p = p * 0.5 + each; .; p
greedy | h, k, o = torch.cat([x.mean(0), x.mean(0)[:, :2]], -1), torch.zeros(4, dtype=torch.long), []; for _
  in range(len(x)):; h = cell(table3(k), h); k = head11(h).argmax(-1); o.append(k); .; torch.stack(o, 1)
greedy, six steps | h, k, o = torch.cat([x.mean(0), x.mean(0)[:, :2]], -1), torch.zeros(4, dtype=torch.long),
  []; for _ in range(6):; h = cell(table3(k), h); k = head11(h).argmax(-1); o.append(k); .; torch.stack(o, 1)
greedy from frames | h, k, o = torch.zeros(4, 5), torch.zeros(4, dtype=torch.long), []; for f in x:; h =
  cell(f + table3(k), h); o.append(head11(h)); k = o[-1].argmax(-1); .; torch.stack(o), k
viterbi | s, o = x[0], []; for t in range(1, len(x)):; b = (s.unsqueeze(-1) + x[t].unsqueeze(-2)).max(1); s =
  b.values; o.append(b.indices); .; s, torch.stack(o)
beam | s, o = torch.zeros(4, 2), []; for row in x:; p = s[:, :, None] + head3(row)[:, None].log_softmax(-1);
  s, i = p.flatten(1).topk(2, -1); o.append(i % 3); .; s, torch.stack(o, -1)
"""
# factors of round t of n; those beyond the example differ
BEYOND = """
above a number | 2 if t > 12 else 1
at a number | 2 if t == 10 else 1
at multiples | 2 if t % 9 == 0 else 1
at some | 2 if t in (11, 17) else 1
limited | min(t, 9)
from a table | SQUARES[t]
from a list | FACTORS[t]
from the end | 2 if n - t > 15 else 1
before a multiple | 2 if 2 * t > n + 3 else 1
at one size | 2 if n == 13 else 1
by its bits | bin(t).count("1")
by a quotient | t // 12
"""
ON_DATA = """
while | while x.norm() > 1:; x = x * 0.5; .; x
limited while | e, i = x.abs().max(), 0; while e > 0.1 and i < 50:; y = x * 0.7; e = (y - x).abs().max(); x =
  y; i += 1; .; x
limit first | e, i = x.abs().max(), 0; while i < 7 and e > 0.1:; y = x * 0.7; e = (y - x).abs().max(); x = y;
  i += 1; .; x
fixed point | for i in range(20):; y = torch.cos(x); if (y - x).abs().max() < 1e-3:; break; .; x = y; .; x
break after | for i in range(12):; y = torch.cos(x); if (y - x).abs().max() < 0.05:; break; .; x = y * 0.9 +
  0.1; .; x, y
break before | for i in range(12):; if not (x.abs() > 1).any():; break; .; x = x * 0.7; .; x
counter inside | n, i = torch.zeros(()), 0; while x.abs().sum() > 0.93:; x = x * 0.5 + 0.001 * i; i += 1; n =
  n + 1; .; x, n
counter after | i = 0; while x.abs().sum() > 1:; x = x * 0.5; i += 1; .; x * i
rows until | s = torch.zeros(4); for t in range(5):; s = s + x[t]; if s.sum() > 1:; break; .; .; s
rows before | s = torch.zeros(4); for t in range(5):; if x[t].sum() > 1:; break; .; s = s + x[t]; .; s
rows written until | o = torch.zeros_like(x); for t in range(5):; o[t] = x[t].exp(); if x[t].sum() > 1:;
  break; .; .; o
loop, then branch | while x.norm() > 1:; x = x * 0.5; .; y = torch.softmax(x, -1) @ x.T if x.sum() > 0 else (x
  * 3).sin() @ x.T; y + 1
branch, then loop | x = torch.softmax(x, -1) * 5 if x.sum() > 0 else (x * 3).cumsum(0); while x.norm() > 1:; x
  = x * 0.5; .; x + 1
two loops | while x.norm() > 1:; x = x * 0.5; .; y = x + 3; while y.norm() > 2:; y = y * 0.6; .; x, y
same loop twice | o = []; for y, n in ((x, 1), (x + 3, 2)):; while y.norm() > n:; y = y * 0.5; .; o.append(y);
  .; o[0], o[1]
branch in while | while x.norm() > 1:; x = x * 0.5 if x.sum() > 0 else -x * 0.7; .; x
branch and break | for i in range(10):; x = x.cumsum(0) * 0.4 if x.sum() > 0 else 0.1 - x * 0.7; if x.norm() <
  1:; break; .; .; x
loop in a side | if x.sum() > 0:; while x.norm() > 1:; x = x * 0.5; .; .; else:; x = x.sin(); .; x
nested whiles | while x.norm() > 1:; y = x; while y.sum() > 0.5:; y = y * 0.5; .; x = x * 0.6 + y * 0.1; .; x
while true | while True:; y = x * 0.8; if (x - y).abs().max() < 0.01:; return y; .; x = y; .; x
for, else | for i in range(10):; if x.norm() < 1:; break; .; x = x * 0.8; .; else:; x = x + 100; .; x
continue | s = torch.zeros(4); for t in range(5):; if x[t].sum() > 0:; continue; .; s = s + x[t]; .; s
return in a loop | for t in range(12):; x = x * 0.6; if x.norm() < 1:; return x + 5; .; .; x
list until | o = []; for t in range(10):; x = x * 0.6; o.append(x.sum(0)); if x.norm() < 1:; break; .; .;
  torch.stack(o)
list without limit | o = [x]; while x.norm() > 1:; x = x * 0.5; o.append(x); .; torch.stack(o)
greedy, written | h, k, o = x, torch.zeros(5, dtype=torch.long), torch.zeros(5, 12, dtype=torch.long); d = k >
  0; for t in range(12):; h = cell4(words(k), h); k = head7(h).argmax(-1); o[:, t] = torch.where(d, 0, k); d =
  d | (k == 3); if d.all():; break; .; .; o
greedy, listed | h, k = x, torch.zeros(5, dtype=torch.long); o, d = [k], k > 0; while not d.all() and len(o) <
  10:; h = cell4(words(k), h); k = head7(h).argmax(-1); o.append(k); d = d | (k == 3); .; torch.stack(o, 1)
greedy, grown | h, k = x, torch.zeros(5, 1, dtype=torch.long); for t in range(9):; h = cell4(words(k[:, -1]),
  h); n = head7(h).argmax(-1); k = torch.cat([k, n[:, None]], 1); if (n == 3).all():; break; .; .; k
layers | while x.norm() > 1:; x = linear(x) * 0.5; .; x
twelve branches | for n in range(12):; x = x.sin() if x.sum() > n else x.cos(); .; x
"""


class Step(nn.Module):
    """A recurrent cell, and a head in each round."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.GRUCell(3, 5), nn.Linear(5, 2)

    def forward(self, x):
        h, outs = x.new_zeros(4, 5), []
        for t in range(x.shape[0]):
            h = self.cell(x[t], h)
            outs.append(self.head(h))
        return torch.cat(
            [torch.stack(outs), torch.stack(outs), h[None, :, :1].expand(len(outs), 4, 1)], -1
        ), h


def names() -> dict[str, object]:
    """Returns the modules and tables that the rows use."""
    torch.manual_seed(1)
    cells = {"cell": (3, 5), "cell2": (5, 5), "cell4": (4, 4)}
    heads = {"head": (5, 2), "head3": (3, 3), "head7": (4, 7), "head11": (5, 11), "linear": (4, 4)}
    return {
        **{name: nn.GRUCell(*sizes) for name, sizes in cells.items()},
        **{name: nn.Linear(*sizes) for name, sizes in heads.items()},
        "lstm": nn.LSTMCell(3, 5),
        "table3": nn.Embedding(64, 3),
        "words": nn.Embedding(7, 4),
        "step": Step(),
        "SQUARES": torch.arange(10.0) ** 2,
        "FACTORS": [0.5] * 13 + [0.7] + [0.5] * 60,
    }


def programs(rows: str) -> Iterator[tuple[str, str]]:
    """Yields the name and the text of each program."""
    for row in rows.replace("\n  ", " ").strip().splitlines():
        name, _, body = row.partition(" | ")
        *statements, result = [each.strip() for each in body.split(";")]
        lines, depth = ["def forward(x):"], 1
        for each in statements:
            if each == ".":
                depth -= 1
                continue
            lines.append("    " * depth + each)
            depth += each.endswith(":")
        yield name, "\n".join([*lines, f"    return {result}", ""])


def over_sizes() -> Iterator[tuple[str, str]]:
    yield from programs(OVER_SIZES)
    loop = "s, n = torch.zeros(4, 3), len(x); for t in range(n):; s = s * 0.99 + x[t] * ({}); .; s"
    pairs = (row.split(" | ") for row in BEYOND.strip().splitlines())
    yield from programs("\n".join(f"{name} | {loop.format(factor)}" for name, factor in pairs))
