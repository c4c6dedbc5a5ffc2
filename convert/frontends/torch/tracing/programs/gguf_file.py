"""Models in GGUF files: transformers names class and parameters, the package gguf reads the tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch

from tmconvert.errors import LoadError
from tmconvert.frontends.torch.gguf_blocks import matrix_of
from tmconvert.frontends.torch.pretrained import PretrainedFolder, unusable
from tmconvert.frontends.torch.pretrained_configuration import Refusal, checked_configuration
from tmconvert.frontends.torch.tracing.programs.confined_libraries import confined
from tmconvert.ir.fake_quant import IntegerMatrix

_NEAR = 1e-6  # of the largest element: two roundings of float32


def gguf_folder(path: str) -> PretrainedFolder:
    """Returns the checked configuration of a file. Raises LoadError TM1028."""
    try:
        import gguf
        from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint
        from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    except ImportError as error:
        raise unusable(path, f"{error.name} is not installed", "pip install transformers gguf") from error
    assert gguf
    try:
        with confined(f"{path}.d", path):
            found = load_gguf_checkpoint(path)["config"]
        configuration, _ = checked_configuration(found)
    except LoadError:
        raise
    except Refusal as refusal:
        raise unusable(path, str(refusal), refusal.help) from None
    except Exception as error:  # of many kinds: damaged files, unknown architectures
        raise unusable(path, f"the file cannot be read: {error!s:.300}") from error
    kind = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(configuration.get("model_type"))
    name = kind[0] if isinstance(kind, tuple) else kind
    if name is None:
        raise unusable(
            path, f"transformers has no decoder of the type {configuration.get('model_type')!r:.80}"
        )
    return PretrainedFolder(path, {**configuration, "architectures": [name]}, False, {})


def gguf_weights(
    path: str, kind: Callable[[object], torch.nn.Module], config: object
) -> tuple[dict[str, torch.Tensor], dict[str, IntegerMatrix]]:
    """Returns the weights of a file in float32, and integers of those in blocks, by parameter names."""
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    with torch.device("meta"):
        empty = kind(config)
    found = load_gguf_checkpoint(path, return_tensors=True, model_to_load=empty)
    weights: dict[str, torch.Tensor] = found["tensors"]
    return weights, dict(_matrices(path, empty, found["config"], weights))


def _matrices(
    path: str, model: torch.nn.Module, config: dict[str, object], weights: dict[str, torch.Tensor]
) -> Iterator[tuple[str, IntegerMatrix]]:
    import gguf
    from transformers import modeling_gguf_pytorch_utils as theirs

    reader = gguf.GGUFReader(path)
    architecture = theirs.read_field(reader, "general.architecture")[0]
    processor = theirs.TENSOR_PROCESSORS.get(architecture, theirs.TensorProcessor)(config=config)
    names = theirs.get_gguf_hf_weights_map(model, processor)
    for tensor in reader.tensors:
        name = names.get(tensor.name)
        matrix = matrix_of(tensor.tensor_type.name, tensor.data) if name in weights else None
        if name is None or matrix is None:
            continue
        rows = _rows(processor.process, tensor.name, len(matrix.values), names)
        plain = weights[name].numpy()
        for order in (None, rows):
            moved = matrix if order is None else _with_rows(matrix, order)
            if plain.shape == moved.values.shape and _are_near(moved.restored(), plain):
                yield name, moved
                break


def _rows(process: Callable[..., object], name: str, count: int, names: dict[str, str]) -> np.ndarray | None:
    """Returns the order in which transformers has the rows of a tensor; None for other changes."""
    numbers = np.arange(count, dtype=np.float64).reshape(count, 1)
    try:
        made = getattr(process(numbers, name, tensor_key_mapping=names, parsed_parameters={}), "weights", ())
    except Exception:  # of a processor that needs the whole tensor
        return None
    order = np.asarray(made).reshape(-1).astype(np.int64)
    return order if np.array_equal(np.sort(order), np.arange(count)) else None


def _with_rows(matrix: IntegerMatrix, order: np.ndarray) -> IntegerMatrix:
    zeros = None if matrix.zero_point is None else matrix.zero_point[order]
    return matrix._replace(values=matrix.values[order], scale=matrix.scale[order], zero_point=zeros)


def _are_near(found: np.ndarray, plain: np.ndarray) -> bool:
    return bool(np.abs(found - plain).max() <= _NEAR * np.abs(plain).max())
