"""Explanations of the error codes of running and transforming models."""

from __future__ import annotations

from tmconvert.errors.explanation import Explanation

TRANSFORM = {
    "TM6050": Explanation(
        "the model has no such value",
        "A node, attribute or submodule is named that the model does not have.",
        "tmconvert run model.tm -i x.npz -o y.npz --watch layer9_out",
        "`tmconvert inspect MODEL --graph` shows the names; those of nodes in submodules follow the path of "
        "the submodule: layer1.0.relu_out.",
    ),
}
