"""Checks that a written file has the inputs and outputs of the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tmconvert.errors import VerificationError
from tmconvert.ir.types import NamedArrays


def check_edges(
    inputs: NamedArrays,
    outputs: Sequence[str],
    of_file: Mapping[str, Sequence[object] | None],
    outputs_of_file: Sequence[str],
) -> None:
    """Raises VerificationError TM4001 for a file whose inputs or outputs differ from the model's.

    ``of_file`` has the shapes of the file's inputs, where they are known; sizes that are no numbers are open.
    """
    help = (
        "pass the model that the file was converted from, with the same --outputs, --rename and --input-shape"
    )
    lacking = {"inputs": set(of_file) - set(inputs), "outputs": set(outputs) - set(outputs_of_file)}
    names = {"inputs": (of_file, inputs), "outputs": (outputs_of_file, outputs)}
    for what in [what for what, others in lacking.items() if others]:
        found, wanted = map(_listed, names[what])
        message = f"the {what} of the file are {found}, but those of the model are {wanted}"
        raise VerificationError("TM4001", message, notes=[("help", help)])
    for name, shape in of_file.items():
        array = inputs[name]
        if shape is not None and (
            len(shape) != array.ndim
            or any(type(size) is int and size != own for size, own in zip(shape, array.shape, strict=True))
        ):
            raise VerificationError(
                "TM4001",
                f"the input {name} of the file has shape {list(shape)}, but that of the model "
                f"{list(array.shape)}",
                notes=[("help", help)],
            )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
