"""Writes random programs with Python's control flow: ``program(seed)`` is the text of one.

Its ``forward`` takes ``x``, float32 [n, 4], and ``mask``, bool [n, 4], where n is open, and returns ``x``,
``y`` and ``s``, float32 [4]. Every fourth program calls a scripted function that has the control flow.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

# what is written at the level of frames, in a loop over them, and in one whose number of rounds is static
FRAMES = (
    "x = torch.tanh(x) - y",
    "x, y = y, x",
    "y = y @ w",
    "y = y.masked_fill(mask, {m})",
    "y = layer(y)",
    "x = x.softmax(-1) * 3",
    "x = x - x.mean(0)",
    "y = y.cumsum(0) * 0.3",
    "y = y + w[k % 4]",
    "y = helper(x, y)",
    "s = s * {m} + x.mean(0)",
    "parts.append(x.amax(0) + s)",
    "k = k + 1",
    "y = y.clamp(max=abs(x[0, 2].item()) + {m})",
    "x = torch.cat([x[1:], x[:1]])",
    "x = x.clone(); x[:, 1:] += y[:, :-1]",
)
ROUNDS = (
    "s = s * 0.5 + x[t]",
    "s = (layer(x[t]) + s).tanh()",
    "s = s - y[n - 1 - t] * {m}",
    "s = s + x[t] * (t + 1) / n",
    "o[t] = s",
    "o[t, 1:3] = x[t, :2] + {m}",
    "outs.append(s + x[t])",
    "outs.append(s.exp().clamp(max=3.0))",
    "grown = torch.cat([grown, s.unsqueeze(0)])",
    "s = torch.where(mask[t], s, x[t])",
    "k = k + 1",
    "s = s + w[k % 4]",
    "s = s + grown.mean(0)",
)
STATIC = (
    "s = (s @ w).tanh()",
    "x = x * 0.7 + y * 0.2",
    "s = s + w[i]",
    "y = y - i * 0.1",
    "parts.append(s * i)",
    "y = torch.cat([y[:, 1:], y[:, :1]], 1)",
    "s = s + x[:, i].mean()",
)
OVER_SIZE = (
    "for t in range(n):",
    "for t in range(x.shape[0]):",
    "for t, _ in enumerate(x):",
    "for t in range(n - 1, -1, -1):",
    "for t in reversed(range(n)):",
    "for t in range(1, n):",
    "for t in range(n // 2):",
    "for t in range(0, n, 2):",
)
ON_DATA = (  # each with what makes it end
    ("while x.norm() > 1.5:", "x = x * 0.6"),
    ("while s.abs().max() > 0.4 and k < 9:", "s = s * 0.5; k += 1"),
    ("while not (y.abs() < 2).all():", "y = y * 0.5"),
    ("while (x - y).abs().max() > 0.5:", "x, y = (x * 0.7 + y * 0.3), (y * 0.7 + x * 0.3)"),
)
BY_DATA = (
    "x.sum() > {c}",
    "(y > {c}).any()",
    "y.max() <= x.max()",
    "not (x < {c}).all()",
    "x.mean() > 0.05 and s.min() < {c}",
    "mask.any()",
    "mask[0].all() or x[0, 0] > {c}",
    "x.max().item() - 1 > {c}",
    "bool((x * mask).sum().lt({c}))",
)
BY_SIZE = (
    "n > 4",
    "n % 2",
    "n % 2 == 0",
    "len(x) < 3",
    "x.size(0) >= 6",
    "n > 3 and n % 2 == 1",
    "2 * n > 9",
)
BY_ROUND = ("x[t].sum() > {c}", "s.max() < x[t].min()", "mask[t].any()", "(s > {c}).all()")
BY_COUNTER = ("t > 0", "t < n - 1", "t % 2 == 0", "t == 0")
HEAD = """
layer = torch.nn.Linear(4, 4).requires_grad_(False)
w = torch.randn(4, 4)

def helper(a, b):
    if a[0, 0] > b[0, 1]:
        return a.cos()
    return a * b

{scripted}
def forward(x, mask):
    n, k, y = len(x), 0, x.flip(1)
    s, o, grown, parts, outs = x.mean(0), torch.zeros_like(x), x[:1], [x[0]], []
"""
END = """
    if outs:
        s = s + torch.stack(outs).sum(0)
    return x + o + sum(parts), y + k * 0.1, s + grown.sum(0)
"""
SCRIPTED = """
@torch.jit.script
def scripted(x: torch.Tensor, mask: torch.Tensor, w: torch.Tensor):
    n, k, s, y = x.size(0), 0, x.mean(0), x.flip(1)
    o, grown, outs = torch.zeros_like(x), x[:1], [x[0]]
{body}
    return o, grown, s + torch.stack(outs).sum(0) + k
"""
WITHOUT_CLOSURE = {"layer(x[t])": "(x[t] @ w)"}


class Program:
    """Writes one program, with ``decisions`` branches at most, and ``loops`` loops."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.decisions = self.random.choice((1, 1, 2, 2, 3, 4))
        self.loops = self.random.choice((0, 1, 1, 2))
        self.is_scripted = seed % 4 == 3
        if not self.loops and self.random.random() < 0.2:
            self.decisions = self.random.randint(5, 9)  # one after the other

    def text(self) -> str:
        scripted = ""
        if self.is_scripted:
            self.loops = max(self.loops, 1)
            body = "\n".join(self.loop(1))
            for used, instead in WITHOUT_CLOSURE.items():
                body = body.replace(used, instead)
            scripted = SCRIPTED.format(body=body)
        lines = [*self.block(1, self.random.randint(2, 4), "frames")]
        if self.is_scripted:
            lines.append("    o, grown, s = scripted(x, mask, w)")
        while self.decisions > 3 or not any(line.endswith(":") for line in lines):
            lines += self.branch(1, "frames")
        while self.loops > 0:
            lines += self.loop(1)
        return HEAD.format(scripted=scripted) + "\n".join(lines) + END

    def pick(self, texts: tuple[str, ...]) -> str:
        m, c = self.random.choice((0.5, -1.5, 2)), self.random.choice((-2, 0, 0.5, 3))
        return self.random.choice(texts).format(m=m, c=c)

    def block(self, depth: int, length: int, level: str) -> Iterator[str]:
        """Yields the lines of a block; ``level`` is what it is in: the frames, a round, a static round."""
        statements = {"frames": FRAMES, "round": ROUNDS, "static": STATIC}[level]
        indent = "    " * depth
        yield indent + self.pick(statements)
        for _ in range(length - 1):
            kind = self.random.random()
            if kind < 0.35 and self.decisions > 0 and depth < 5:
                yield from self.branch(depth, level)
            elif kind < 0.55 and self.loops > 0 and depth < 4:
                yield from self.loop(depth, level)
            else:
                yield indent + self.pick(statements)

    def condition(self, level: str) -> str:
        by_round = (BY_ROUND, BY_ROUND, BY_COUNTER, BY_SIZE)
        kinds = by_round if level == "round" else (BY_DATA, BY_DATA, BY_SIZE)
        return self.pick(self.random.choice(kinds))

    def branch(self, depth: int, level: str) -> Iterator[str]:
        """Yields a branch: with or without other sides, or with an early end."""
        self.decisions -= 1
        indent = "    " * depth
        yield f"{indent}if {self.condition(level)}:"
        kind = self.random.random()
        if kind < 0.25 and not self.is_scripted:
            yield f"{indent}    return x - y, y * 2, s"
            return
        yield from self.block(depth + 1, self.random.randint(1, 2), level)
        while kind > 0.75 and self.decisions > 0 and self.random.random() < 0.6:
            self.decisions -= 1
            yield f"{indent}elif {self.condition(level)}:"
            yield from self.block(depth + 1, 1, level)
        if kind > 0.4:
            yield f"{indent}else:"
            yield from self.block(depth + 1, self.random.randint(1, 2), level)

    def loop(self, depth: int, level: str = "frames") -> Iterator[str]:
        """Yields a loop over the size, one that ends on data, or one with a static number of rounds."""
        self.loops -= 1
        indent, kind = "    " * depth, self.random.random()
        scripted = self.is_scripted
        if level == "frames" and (kind < 0.6 or scripted):
            if scripted or self.random.random() < 0.15:
                yield f"{indent}t = 0"
                yield f"{indent}while t < n:"
                ahead, level = [f"{indent}    t += 1"], "round"
            else:
                yield indent + self.random.choice(OVER_SIZE)
                ahead, level = [], "round"
        elif level == "frames" and kind < 0.8:
            head, step = self.random.choice(ON_DATA)
            yield indent + head
            ahead, level = [f"{indent}    {step}"], "frames"
        else:
            yield f"{indent}for i in range({self.random.choice((2, 3, 4))}):"
            ahead, level = [], "static" if level == "frames" else level
        yield from self.jumps(depth + 1, level, bool(ahead) and level == "round")
        yield from self.block(depth + 1, self.random.randint(1, 3), level)
        yield from ahead
        if level in ("round", "static") and not ahead and self.random.random() < 0.15:
            yield f"{indent}else:"
            yield f"{indent}    s = s + 1"

    def jumps(self, depth: int, level: str, is_counted: bool) -> Iterator[str]:
        """Yields what leaves a round early, for some loops."""
        if self.decisions <= 0 or self.random.random() > 0.35:
            return
        self.decisions -= 1
        indent = "    " * depth
        words = ["break"] if is_counted or level == "frames" else ["continue", "break"]
        yield f"{indent}if {self.condition(level)}:"
        yield f"{indent}    {self.random.choice(words)}"


def program(seed: int) -> str:
    """Returns the text of a program."""
    return Program(seed).text()
