"""The source of a package: a folder of transformers, found by path, in the cache, or on the hub."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source as Place
from tmconvert.formats.mapped_file import read_regular
from tmconvert.frontends.torch.hub_cache import cache, cached_folder, is_hub_name
from tmconvert.frontends.torch.pretrained import CONFIG, MOST_BYTES, POSITIONS, check_folder

GENERATION = "generation_config.json"
# what tokenizers and preprocessors read; none of it is code
COPIED = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.json", "vocab.txt", "merges.txt", "tokenizer.model", "spiece.model"),
    *("sentencepiece.bpe.model", "chat_template.jinja", "chat_template.json", GENERATION),
    *("preprocessor_config.json", "processor_config.json", "scheduler_config.json"),
)
INDEX = "model_index.json"
# by the file that a folder has: the library that wrote it, and what is downloaded
_LIBRARIES = {
    CONFIG: ("transformers", ("*.json", "*.safetensors", "*.txt", "*.model", "*.jinja", "*/config.json")),
    INDEX: ("diffusers", ("*.json", "*/*.json", "*/*.txt", "*/*.safetensors")),
}
_TOKENIZER, _NEWER = "tokenizer_config.json", b'"TokenizersBackend"'
_MOST_OF_TOKENIZER = 1 << 28  # bytes
_LONGEST = 4096  # tokens, where a configuration has no limit


class PackageSource(NamedTuple):
    """A folder of transformers that was checked.

    ``configuration`` is that of transformers without the names of code, ``generation`` that of
    ``generate``; it is empty where the folder has none.
    """

    folder: Path
    configuration: Mapping[str, Any]
    generation: Mapping[str, Any]

    @property
    def architecture(self) -> str:
        """Returns the name of the class of the model."""
        return str((self.configuration.get("architectures") or ["?"])[0])

    @property
    def text(self) -> Mapping[str, Any]:
        """Returns the configuration of the part that writes text."""
        nested = (self.configuration.get(name) for name in ("text_config", "decoder"))
        return next((each for each in nested if isinstance(each, dict)), self.configuration)

    @property
    def image_token(self) -> int:
        """Returns the token whose embedding the features of an image replace."""
        found = self.configuration.get("image_token_id", self.configuration.get("image_token_index"))
        return int(found or 0)

    @property
    def context(self) -> int:
        """Returns how many tokens the model can attend to."""
        found = [self.text.get(name) for name in POSITIONS]
        return next((each for each in found if isinstance(each, int) and each > 0), _LONGEST)

    def setting(self, name: str) -> Any:
        """Returns a setting of generation, which may be in either configuration; None if it is in none."""
        found = (each.get(name) for each in (self.generation, self.text, self.configuration))
        return next((each for each in found if each is not None), None)

    @property
    def ends(self) -> list[int]:
        """Returns the tokens that end a text."""
        found = self.setting("eos_token_id")
        return list(found) if isinstance(found, list) else [] if found is None else [found]

    @property
    def known_ends(self) -> list[int]:
        """Returns the tokens that end a text, without those beyond the vocabulary."""
        return [each for each in self.ends if self.known_token(each) is not None]

    def known_token(self, token: Any) -> int | None:
        """Returns a token of the vocabulary; None for another one, which onnxruntime-genai refuses."""
        size = self.text.get("vocab_size")
        return token if isinstance(token, int) and 0 <= token < (size or token + 1) else None

    def copied_files(self) -> Iterator[tuple[str, bytes]]:
        """Yields names and contents of the files that packages share with their source.

        Raises LoadError TM1028 for one that cannot be read, or is very large.
        """
        return copied_files(self.folder)


def copied_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yields names and contents of the files of a folder that packages copy. Raises LoadError TM1028."""
    for name in COPIED:
        path = folder / name
        if path.is_file():
            yield name, _known_to_older(_content(path, _MOST_OF_TOKENIZER), name)


def _known_to_older(content: bytes, name: str) -> bytes:
    """Returns the configuration of a tokenizer with the class that releases before 5 of transformers know."""
    if name != _TOKENIZER or _NEWER not in content:
        return content
    return content.replace(_NEWER, b'"PreTrainedTokenizerFast"')


def find_source(name: str, *, download: bool, allow_code: bool) -> PackageSource:
    """Returns the folder at a path, of a name in the local cache or, with ``download``, on the hub.

    Raises LoadError TM1001 where there is none, TM1028 for one that cannot be used, TM1030 for a download
    that fails. Code of the folder is not run, also with ``allow_code``.
    """
    folder = find_folder(name, CONFIG, download=download)
    checked = check_folder(str(folder))
    path = folder / GENERATION
    generation = json_object(path) if path.is_file() else {}
    return PackageSource(folder, checked.configuration, generation)


def json_object(path: Path) -> dict[str, Any]:
    """Returns the object in a JSON file; an empty one for other values. Raises LoadError TM1028."""
    found = json_value(path)
    return found if isinstance(found, dict) else {}


def json_value(path: Path) -> Any:
    """Returns the value in a JSON file. Raises LoadError TM1028."""
    try:
        return json.loads(_content(path, MOST_BYTES))
    except (ValueError, RecursionError) as error:
        raise _unreadable(path, str(error)) from error


def _content(path: Path, most: int) -> bytes:
    try:
        if path.stat().st_size > most:
            raise _unreadable(path, f"it is larger than {most >> 20} MiB")
        return bytes(read_regular(path))
    except OSError as error:
        raise _unreadable(path, str(error)) from error


def _unreadable(path: Path, reason: str) -> LoadError:
    return LoadError("TM1028", f"{path.name} cannot be read: {reason:.200}", source=Place(str(path)))


def find_folder(name: str, file: str, *, download: bool) -> Path:
    """Returns a folder that has a file, by its path, in the local cache or, with ``download``, on the hub.

    Raises LoadError TM1001, TM1028, TM1030.
    """
    if (Path(name) / file).is_file():
        return Path(name)
    if os.path.lexists(name):
        raise LoadError(
            "TM1028",
            f"{name} is not a folder of {_LIBRARIES[file][0]}: it has no {file}",
            notes=[("help", "pass a folder that save_pretrained wrote, or a name such as org/name")],
        )
    found = cached_folder(name, file)
    if found is None and download and is_hub_name(name):
        found = _downloaded(name, _LIBRARIES[file][1])
    if found is not None:
        return found
    help_text = "pass the folder that save_pretrained wrote"
    if is_hub_name(name):
        help_text = f"it is not in {cache()} either: --download (download=True) fetches it from the hub"
    raise LoadError("TM1001", f"there is no folder {name}", notes=[("help", help_text)])


def _downloaded(name: str, patterns: tuple[str, ...]) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise LoadError(
            "TM1021",
            "a download needs huggingface_hub, which is not installed",
            notes=[("help", "pip install 'tmconvert[hub]'")],
        ) from error
    try:
        return Path(snapshot_download(name, allow_patterns=list(patterns)))
    except Exception as error:  # of many kinds: no connection, no such name, no permission
        raise LoadError(
            "TM1030",
            f"{name} could not be downloaded: {str(error).strip().partition(chr(10))[0]:.300}",
            notes=[("help", "check the name and the connection; a gated model needs `hf auth login`")],
        ) from error
