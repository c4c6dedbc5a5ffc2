"""Builds a TracedModule from a Caffe net. Nothing in the files is ever executed."""

from __future__ import annotations

from functools import partial

from tmconvert.formats.caffe.dialects import MERGED
from tmconvert.formats.caffe.reader import net_of
from tmconvert.formats.mapped_file import blaming, map_file
from tmconvert.frontends.caffe.faults import inconsistent
from tmconvert.frontends.caffe.graphs import GraphBuilder, share_blobs
from tmconvert.frontends.caffe.source_file import CaffeSource
from tmconvert.frontends.caffe.text import read_text
from tmconvert.frontends.caffe.weights import check_weights, read_weights
from tmconvert.frontends.frontend import LoadedModel
from tmconvert.ir.ids import number


def load_caffe(path: str) -> LoadedModel:
    """Loads the net whose text is at ``path``, with the weights next to it.

    Raises LoadError: TM1001 where a file cannot be read, TM1016 for one that is no Caffe file, TM1051 for
    layers that do not fit together, TM1052 for parts that are not read, TM1053 without weights.

    >>> load_caffe("deploy.prototxt").module.graph  # doctest: +SKIP
    """
    data = map_file(path)
    with blaming(partial(inconsistent, path)):
        text, lines = read_text(path, data)
        net = net_of(text, read_weights(path), MERGED.name, lines)
        share_blobs(path, net)
        check_weights(path, net)
        builder = GraphBuilder(path, net)
        module = builder.build()
    module.producer = "Caffe"
    number(module)
    return LoadedModel(module, CaffeSource(path, net, builder.inputs, builder.outputs()))
