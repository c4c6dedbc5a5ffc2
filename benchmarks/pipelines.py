"""Whole pipelines whose parts are files, against PyTorch: pictures from text, and speech from text.

    python benchmarks/pipelines.py
    python benchmarks/pipelines.py --only unet speech --litert

Tiny configurations with random weights. "unet" is a text encoder of CLIP, a U-Net with cross-attention and
the decoder of an autoencoder (diffusers); "dit" has the transformer of Stable Diffusion 3 instead;
"own-unet" needs transformers only, and has a U-Net of pipeline_parts.py. Four steps of a DDIM scheduler run
outside, with guidance that doubles the batch. "speech" is VITS: text encoder and durations, flow, and the
vocoder; the alignment is made outside of the files, where also the noise comes from. Each part is converted
once with open sizes, and runs at two sets of sizes. The exit status is 1 where an image or a waveform differs
by more than 1e-3 of its maximum.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pipeline_parts import Parts, dit_parts, own_unet_parts, speech_parts, unet_parts

import tmconvert
from tmconvert.targets.registry import runtime_for

TOLERANCE = 1e-3
Call = Callable[..., tuple[np.ndarray, ...]]
SIZES = ({"batch": 1, "height": 8, "width": 8}, {"batch": 2, "height": 12, "width": 8})
STEPS = 4
GUIDANCE = 3.0


def picture(parts: Mapping[str, Call], sizes: Mapping[str, int]) -> np.ndarray:
    """Returns the image of four steps with guidance, by DDIM in NumPy."""
    random = np.random.default_rng(0)
    batch = sizes["batch"]
    prompts = random.integers(3, 90, (batch, 7))
    (texts,) = parts["text"](np.concatenate([np.zeros_like(prompts), prompts]))
    latents = random.standard_normal((batch, 4, sizes["height"], sizes["width"])).astype(np.float32)
    kept = np.cumprod(1 - np.linspace(0.00085**0.5, 0.012**0.5, 1000) ** 2)  # of the signal, by timestep
    times = np.linspace(999, 1, STEPS).astype(np.int64)
    for now, after in zip(times, [*times[1:], 0], strict=True):
        given = np.concatenate([latents, latents])
        (noise,) = parts["denoiser"](given, np.full(2 * batch, now), texts)
        free, guided = np.split(noise, 2)
        noise = free + GUIDANCE * (guided - free)
        clean = (latents - (1 - kept[now]) ** 0.5 * noise) / kept[now] ** 0.5
        clean = np.clip(clean, -4, 4)
        latents = (kept[after] ** 0.5 * clean + (1 - kept[after]) ** 0.5 * noise).astype(np.float32)
    return parts["decoder"](latents)[0]


def speech(parts: Mapping[str, Call], sizes: Mapping[str, int]) -> np.ndarray:
    """Returns the waveform of VITS; texts of a batch have different lengths."""
    random = np.random.default_rng(0)
    batch, length = sizes["batch"], sizes["height"]
    tokens = random.integers(1, 30, (batch, length))
    mask = (np.arange(length) < length - np.arange(batch)[:, None]).astype(np.int64)
    means, scales, durations = parts["text"](tokens, mask)
    counts = np.ceil(durations[:, 0]).astype(np.int64)
    longest = int(counts.sum(1).max())
    frames = np.zeros((2, batch, longest, means.shape[-1]), np.float32)
    for row, count in enumerate(counts):
        for which, source in enumerate((means, scales)):
            frames[which, row, : count.sum()] = np.repeat(source[row], count, 0)
    seen = (np.arange(longest) < counts.sum(1)[:, None]).astype(np.float32)[:, None]
    noise = random.standard_normal(frames[0].shape).astype(np.float32)
    latents = (frames[0] + 0.667 * noise * np.exp(frames[1])).transpose(0, 2, 1)
    (spectrogram,) = parts["flow"](np.ascontiguousarray(latents), seen)
    return parts["vocoder"](spectrogram)[0]


PIPELINES: dict[str, tuple[Callable[[], Parts], Callable[..., np.ndarray]]] = {
    "own-unet": (own_unet_parts, picture),
    "unet": (unet_parts, picture),
    "dit": (dit_parts, picture),
    "speech": (speech_parts, speech),
}


def of_torch(module: torch.nn.Module) -> Call:
    def call(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        with torch.no_grad():
            found = module(*map(torch.from_numpy, arrays))
        return tuple(each.numpy() for each in (found if isinstance(found, tuple) else (found,)))

    return call


def converted(parts: Parts, folder: Path, target: str) -> dict[str, Call]:
    """Converts all parts; returns a function for each. A size that cannot stay open is an error."""
    calls: dict[str, Call] = {}
    for name, (module, example, axes) in parts.items():
        path = folder / f"{name}.{target}"
        options: dict[str, Any] = {
            "example_inputs": list(example),
            "dynamic_shapes": axes,
            "accept_range": True,
        }
        report = getattr(tmconvert, f"to_{target}")(module, path, **options)
        calls[name] = _runner(path, target, report)
    return calls


def _runner(path: Path, target: str, report: Any) -> Call:
    runtime: Any = runtime_for(target, path)
    inputs = [each["name"] for each in report.inputs]
    outputs = [each["name"] for each in report.outputs]

    def call(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple(runtime.run([path], dict(zip(inputs, arrays, strict=True)), outputs))

    return call


def differences(name: str, folder: Path, target: str = "onnx") -> list[float]:
    """Returns max|a-b| / max|b| of the pipeline's result, at each set of sizes."""
    make, run = PIPELINES[name]
    torch.manual_seed(0)
    parts = make()
    in_torch = {part: of_torch(module) for part, (module, _, _) in parts.items()}
    in_files, found = converted(parts, folder, target), []
    for sizes in SIZES:
        expected, actual = run(in_torch, sizes), run(in_files, sizes)
        same = actual.shape == expected.shape
        found.append(float(np.abs(actual - expected).max() / np.abs(expected).max()) if same else np.inf)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PIPELINES, default=list(PIPELINES))
    parser.add_argument("--litert", action="store_true", help="TFLite files, in LiteRT")
    options = parser.parse_args()
    failed = 0
    for name in options.only:
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = differences(name, Path(folder), "tflite" if options.litert else "onnx")
            except ImportError as error:
                print(f"{name:12} absent: {error}")
                continue
        state = "wrong" if max(found) > TOLERANCE else "right"
        failed += state == "wrong"
        print(f"{name:12} {state} {' '.join(f'{each:.1e}' for each in found)}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
