"""Models become modules of PyTorch and packages, and are traced again: outputs, gradients, graphs.

    python benchmarks/to_torch.py               the recorded models, and 40 of torch_models_*.py
    python benchmarks/to_torch.py --only 'timm/*' transformers/bert
    python benchmarks/to_torch.py --corpus FOLDER --markdown

The outputs of a model of PyTorch must be those of ``to_torch()`` within 1e-5, so must the gradients of its
parameters; a recorded model must have the outputs of its graph in NumPy, or of PyTorch in float64, and finite
gradients. The package of ``to_folder`` must compute the same in a process without tmconvert. Traced, it must
have the graph of the model (``tests/torch_code/canonical.py``: ``exact`` for PyTorch, ``canonical`` for
MegEngine), and its own package must be the same text and graph, names included. Quantized models are compared
by outputs and gradients. Exit status 1 where one is not right.
"""

from __future__ import annotations

import argparse
import copy
import fnmatch
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch_models
from torch import nn

import tmconvert
from tmconvert.ir.tree import leaves

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from tests.torch_code.folders import WithoutTmconvert, differences  # noqa: E402

CORPUS = ROOT / "tests" / "data"
TOLERANCE = 1e-5
WITHOUT = ("hostile", "custom_user_function")  # no models, a function of the user
QUANTIZED = ("qat", "quantized")  # compared by outputs
EXACT = {"corpus/det_fpn_scale_stride"}  # here NumPy's float32 is the less exact one
PYTORCH = (
    "small/*",
    "qat/*",
    "torchvision/resnet18",
    "torchvision/mobilenet_v[23]*",
    "torchvision/shufflenet_v2_x0_5",
    "torchvision/densenet121",
    "torchvision/squeezenet1_0",
    "torchvision/googlenet",
    "torchvision/efficientnet_b0",
    "torchvision/convnext_tiny",
    "torchvision/swin_t",
    "torchvision/vit_b_16",
    "torchvision/regnet_x_400mf",
    "timm/convnext_atto",
    "timm/mobilevit_xxs",
    "timm/repvgg_a0",
    "timm/ghostnet_050",
    "transformers/bert",
    "transformers/distilbert",
    "transformers/albert",
    "transformers/gpt2",
    "transformers/llama",
    "transformers/mistral",
    "transformers/t5",
    "transformers/bart",
    "transformers/whisper",
    "transformers/vit",
    "transformers/swin",
    "transformers/clip",
    "transformers/segformer",
)


# PyTorch has another path with gradients, where padding is not zero: they are compared for a trace of that
OTHER_PATH = {"small/transformer_encoder_masked"}
process = WithoutTmconvert()


@dataclass
class Row:
    """The result of one model; errors are relative to the largest element."""

    name: str
    output: float = float("inf")
    gradient: float | None = None
    is_finite: bool = True
    package: float = float("inf")
    difference: str = "not compared"
    seconds: float = 0.0
    note: str = ""

    @property
    def is_right(self) -> bool:
        near = self.output <= TOLERANCE and (self.gradient is None or self.gradient <= TOLERANCE)
        is_same = self.package <= TOLERANCE and not self.difference
        return near and is_same and self.is_finite and not self.note


def tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in leaves(torch_models.plain_structure(tree)) if isinstance(leaf, torch.Tensor)]


def error(results: Iterable[torch.Tensor], expected: Iterable[torch.Tensor]) -> float:
    """The largest difference of any pair, relative to the largest element of its second."""
    worst = 0.0
    for result, right in zip(results, expected, strict=True):
        if right.numel():
            scale = max(float(right.double().abs().max()), 1e-6)
            worst = max(worst, float((result.double() - right.double()).abs().max()) / scale)
    return worst


def differentiate(results: Sequence[torch.Tensor], net: nn.Module) -> dict[str, torch.Tensor]:
    """The gradients of the sum of all squares, by parameter."""
    total = [result.float().square().sum() for result in results if result.requires_grad]
    if total:
        torch.stack(total).sum().backward()
    return {name: each.grad for name, each in net.named_parameters() if each.grad is not None}


def packaged(row: Row, model: Any, net: nn.Module, inputs: Sequence[torch.Tensor]) -> None:
    """Runs the package without tmconvert, and traces it."""
    with torch.no_grad():
        expected = tensors(net.eval()(*inputs))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        model.to_folder(place / "net", "Net")
        row.package = error(process.run(place, inputs), expected)
        is_exact = not row.name.startswith("corpus/")
        is_quantized = not is_exact and any(word in row.name for word in QUANTIZED)
        row.difference = "" if is_quantized else differences(model, inputs, place, is_exact=is_exact)


def in_float64(net: nn.Module, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    with torch.no_grad():
        return tensors(copy.deepcopy(net).double()(*(each.double() for each in inputs)))


def recorded(row: Row, path: Path) -> None:
    model = tmconvert.load(path)
    with np.load(path.with_suffix(".npz")) as arrays:
        names = [f"in{i}" for i in range(sum(name.startswith("in") for name in arrays.files))]
        inputs = [torch.from_numpy(arrays[name]) for name in names]
    expected = [
        torch.from_numpy(np.array(leaf)) for leaf in leaves(model(*(each.numpy() for each in inputs)))
    ]
    net = model.to_torch()
    results = tensors(net(*inputs))
    expected = in_float64(net, inputs) if row.name in EXACT else expected
    row.output = error([each.detach() for each in results], expected)
    row.is_finite = all(bool(each.isfinite().all()) for each in differentiate(results, net).values())
    packaged(row, model, net, inputs)


def qat_models() -> dict[str, Callable[[], torch_models.Example]]:
    """Models prepared by torch.ao for quantization-aware training."""
    from torch.ao import quantization
    from torch.ao.quantization.quantize_fx import prepare_qat_fx

    from tests.frontends.torch.quantized_models import Eager, Plain, images, trained

    def done(net: nn.Module) -> torch_models.Example:
        return net.apply(quantization.disable_observer), (images(4),), {}

    def eager(backend: str) -> torch_models.Example:
        return done(Eager(joined=True).prepared(quantization.get_default_qat_qconfig(backend)))

    def fx(backend: str) -> torch_models.Example:
        mapping = quantization.get_default_qat_qconfig_mapping(backend)
        return done(trained(prepare_qat_fx(Plain().train(), mapping, (images(2),))))

    backends = ("fbgemm", "qnnpack", "x86")
    return {
        **{f"qat/eager_{backend}": partial(eager, backend) for backend in backends},
        **{f"qat/fx_{backend}": partial(fx, backend) for backend in backends},
    }


def of_pytorch(row: Row, make: Callable[[], torch_models.Example]) -> None:
    torch.manual_seed(0)
    source, args, kwargs = make()
    source.eval().zero_grad()
    model = tmconvert.trace(source, *args, **kwargs)
    net, inputs = model.to_torch(), tensors((args, kwargs))
    with torch.no_grad():
        row.output = error(tensors(net(*inputs)), tensors(source(*args, **kwargs)))
    packaged(row, model, net, inputs)
    if row.name in OTHER_PATH:
        torch.backends.mha.set_fastpath_enabled(False)
        net = tmconvert.trace(source, *args, **kwargs).to_torch()
        torch.backends.mha.set_fastpath_enabled(True)
    expected, results = tensors(source(*args, **kwargs)), tensors(net(*inputs))
    right, ours = differentiate(expected, source), differentiate(results, net)
    shared = [name for name in right if name in ours]
    row.gradient = error([ours[name] for name in shared], [right[name] for name in shared])
    row.is_finite = all(bool(each.isfinite().all()) for each in ours.values())
    if len(shared) < len(right):
        row.note = f"no gradient of {sorted(set(right) - set(ours))[0]}"


def tried(name: str, work: Callable[[Row], None]) -> Row:
    row, started = Row(name), time.perf_counter()
    try:
        work(row)
    except Exception as failure:  # of any library of models
        row.note = f"{type(failure).__name__}: {str(failure).splitlines()[0] if str(failure) else ''}"
    row.seconds = time.perf_counter() - started
    return row


def line(row: Row, separator: str) -> str:
    gradient = "-" if row.gradient is None else f"{row.gradient:.1e}"
    cells = [f"{row.name:42}", f"{row.output:.1e}", gradient, "finite" if row.is_finite else "not finite"]
    package = f"package {row.package:.1e}, {row.difference or 'same graph and text'}"
    cells += [package, f"{row.seconds:.1f} s", row.note]
    return separator.join(cells)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="PATTERN", help="names of models")
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="folder of recorded models")
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    patterns = arguments.only or ["corpus/*", *PYTORCH]
    work: dict[str, Callable[[Row], None]] = {
        f"corpus/{path.stem}": lambda row, path=path: recorded(row, path)  # type: ignore[misc]
        for path in sorted(arguments.corpus.glob("*.tm"))
        if not path.stem.startswith(WITHOUT)
    }
    for name, make in {**torch_models.models(), **qat_models()}.items():
        work[name] = lambda row, make=make: of_pytorch(row, make)  # type: ignore[misc]
    rows = []
    with process:
        for name, one in work.items():
            if any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
                rows.append(tried(name, one))
                print(line(rows[-1], " | " if arguments.markdown else "  "), flush=True)
    right = sum(row.is_right for row in rows)
    print(f"{right} of {len(rows)} right")
    return int(right < len(rows))


if __name__ == "__main__":
    sys.exit(main())
