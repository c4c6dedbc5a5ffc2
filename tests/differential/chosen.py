"""The random choices, and how one is declared.

Read by MegEngine's Python (3.8). A choice gets a ``Draw`` and a value, and returns a step, a function of the
module and the values so far; or None where the value does not suit. ``exact`` choices give results
without rounding; discontinuous ones (``needs_exact``) are only made of such results, since a rounding
error of the last bit may turn them over. Nothing is computed with the results of ``final`` ones.
"""

import numpy as np

CHOICES = []


class Choice:
    def __init__(self, make, weight, exact, needs_exact, kinds, ranks, final):
        self.make, self.weight, self.exact, self.needs_exact = make, weight, exact, needs_exact
        self.kinds, self.ranks, self.final = kinds, ranks, final

    def suits(self, value, exact):
        return (
            value.ndim in self.ranks
            and np.dtype(value.dtype).kind in self.kinds
            and (exact or not self.needs_exact)
        )


def choice(weight=1, exact=False, needs_exact=False, kinds="f", ranks=range(7), final=False):
    def register(make):
        CHOICES.append(Choice(make, weight, exact, needs_exact, kinds, ranks, final))
        return make

    return register


def step(function, *indices):
    """A step that applies ``function`` to the values with these numbers."""
    return lambda module, values: function(*(values[i] for i in indices))
