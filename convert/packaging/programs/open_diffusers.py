"""Runs the parts of a pipeline of optimum, and the pipeline; needs nothing of tmconvert."""

import importlib
import inspect
from importlib.metadata import version
from typing import Any

from question import packed, reply, unpacked


def answer(question: dict[str, Any]) -> dict[str, Any]:
    torch = importlib.import_module("torch")
    library = importlib.import_module("optimum.onnxruntime")
    pipeline = library.ORTDiffusionPipeline.from_pretrained(question["folder"])
    pipeline.set_progress_bar_config(disable=True)
    given = {
        name: {key: torch.from_numpy(unpacked(each)) for key, each in part["inputs"].items()}
        for name, part in question["parts"].items()
    }
    outputs = {name: dict(getattr(pipeline, name)(**inputs)) for name, inputs in given.items()}
    # the names that the classes of optimum give to outputs of the files
    outputs["unet"]["out_sample"] = outputs["unet"].pop("sample")
    encoded = outputs["vae_encoder"]
    if "latent_dist" in encoded:
        encoded["latent_parameters"] = encoded.pop("latent_dist").parameters
    else:
        encoded["latent_sample"] = encoded.pop("latents")
    (image,) = pipeline(**_inputs(pipeline, given), num_inference_steps=2, output_type="np").images
    if image.ndim != 3 or not 0 <= image.min() <= image.max() <= 1:
        raise ValueError("the pipeline returns no image")
    found = {
        name: {key: packed(each.numpy()) for key, each in made.items() if hasattr(each, "numpy")}
        for name, made in outputs.items()
    }
    return {"version": version("optimum-onnx"), "outputs": found, "image": packed(image)}


def _inputs(pipeline: Any, given: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Returns the states of a text, and what else the pipeline takes: noise, an image to change, its mask."""
    states = given["unet"]["encoder_hidden_states"][:1]
    image = (given["vae_encoder"]["sample"][:1].clamp(-1, 1) + 1) / 2
    channels = given["vae_decoder"]["latent_sample"].shape[1]
    optional = {
        "latents": given["unet"]["sample"][:1, :channels],  # the others are of the image and its mask
        "image": image,
        "mask_image": image[:, :1].round(),
    }
    taken = inspect.signature(type(pipeline).__call__).parameters
    found = {"prompt_embeds": states, "negative_prompt_embeds": -states}
    return {**found, **{name: each for name, each in optional.items() if name in taken}}


if __name__ == "__main__":
    reply(answer)
