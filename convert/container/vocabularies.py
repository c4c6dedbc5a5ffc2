"""The vocabularies that a container names."""

from __future__ import annotations

from tmconvert.container.faults import unknown_vocabulary
from tmconvert.container.values import text
from tmconvert.ir.traced_module import Vocabulary


def vocabulary_called(identifier: object) -> Vocabulary:
    """Returns the vocabulary of an identifier. Raises LoadError TM1012 for an unknown one."""
    from tmconvert.frontends.aten.vocabulary import IDENTIFIER as ATEN
    from tmconvert.frontends.aten.vocabulary import VOCABULARY as ATEN_VOCABULARY
    from tmconvert.frontends.torch.vocabulary import IDENTIFIER as TORCH
    from tmconvert.frontends.torch.vocabulary import VOCABULARY as TORCH_VOCABULARY

    name = text(identifier, "the vocabulary")
    if name == TORCH:
        return TORCH_VOCABULARY
    if name == ATEN:
        return ATEN_VOCABULARY
    from tmconvert.frontends.megengine.release_differences import release_called
    from tmconvert.frontends.megengine.vocabulary import IDENTIFIER, vocabulary_of

    if name.startswith(IDENTIFIER):
        return vocabulary_of(release_called(name.removeprefix(IDENTIFIER)))
    from tmconvert.frontends.onnx.vocabulary import vocabulary_called as onnx_vocabulary

    if (of_onnx := onnx_vocabulary(name)) is not None:
        return of_onnx
    from tmconvert.frontends.tflite.vocabulary import VOCABULARY as TFLITE

    if name == TFLITE.identifier:
        return TFLITE
    from tmconvert.frontends.caffe.vocabulary import VOCABULARY as CAFFE

    if name == CAFFE.identifier:
        return CAFFE
    from tmconvert.frontends.shared.registration import registered_vocabulary

    known = registered_vocabulary(name)
    if known is not None:
        return known
    raise unknown_vocabulary(name)
