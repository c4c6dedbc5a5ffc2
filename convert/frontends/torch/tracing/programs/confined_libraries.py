"""Confines transformers and the libraries that it calls, and hides what they print."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator

import torch

from tmconvert.frontends.torch.pretrained import unusable
from tmconvert.frontends.torch.tracing.programs.confinement import Confined, Confinement

LIBRARIES = ("transformers", "timm", "huggingface_hub")


@contextlib.contextmanager
def confined(folder: str, *readable: str, only_folder: bool = False) -> Iterator[None]:
    """Confines transformers, and hides what it prints: its messages have names of the folder's.

    Raises LoadError TM1028 for what it was kept from.
    """
    loggers = [logging.getLogger(name) for name in LIBRARIES]
    levels = [each.level for each in loggers]
    dtype = torch.get_default_dtype()  # which transformers changes, and leaves so after an error
    import transformers

    log = transformers.utils.logging
    has_progress = log.is_progress_bar_enabled()
    try:
        log.disable_progress_bar()
        for each in loggers:
            each.setLevel(logging.CRITICAL + 1)
        with warnings.catch_warnings(), Confinement(folder, *readable, only_folder=only_folder):
            warnings.simplefilter("ignore")
            yield
    except Confined as error:
        raise unusable(
            folder,
            f"transformers was stopped: {error}",
            "if you trust its origin, write a function that returns the module, and name it as "
            "PACKAGE.MODULE:FUNCTION",
        ) from error
    finally:
        for each, level in zip(loggers, levels, strict=True):
            each.setLevel(level)
        if has_progress:
            log.enable_progress_bar()
        torch.set_default_dtype(dtype)
