"""Allow list of the globals that a ``.tm`` pickle may name, and their replacements.

The rule, in this order:

1. Names in ``VALUES`` and ``NUMPY_SCALARS`` are replaced by a value of ours.
2. Names in ``KNOWN`` become a ``GlobalRef``; what may be *called* is the table in ``builders.py``.
3. Any other name of the standard library (of any Python version) or of NumPy is refused when it is
   named, whether or not it would be called: no model needs it, every attack does.
4. Any name of ``megengine`` is held as a ``GlobalRef``: files of 1.6 refer so to functions and
   classes. Argument-less objects of the packages in ``INSTANCE_PACKAGES`` become an ``Instance``.
5. Names of other packages are the user's own functions and classes: held as a ``GlobalRef``, never
   called. Objects of classes, whose names begin with a capital, become an ``Instance`` without state.

A ``GlobalRef`` is two strings. Nothing here imports a module that a file names.
"""

from __future__ import annotations

import sys

import numpy as np

from tmconvert.frontends.megengine.pickle.fault import damaged, refused
from tmconvert.frontends.megengine.pickle.stand_ins import GlobalRef

NAME_LENGTH_LIMIT = 512

# Spellings of one thing: Python 2 names in protocol 2, NumPy 2 beside NumPy 1.
MODULE_SPELLINGS = {
    "__builtin__": "builtins",
    "_operator": "operator",
    "numpy._core": "numpy.core",
    "numpy._core.multiarray": "numpy.core.multiarray",
    "numpy._core.numeric": "numpy.core.numeric",
}
NAME_SPELLINGS = {("builtins", "long"): "int", ("builtins", "unicode"): "str"}

# Modules of which a type hint may name anything: classes without behaviour of their own.
OF_TYPE_HINTS = {"collections.abc", "numbers", "typing"}

KNOWN = {
    "abc": {"ABCMeta"},
    "_codecs": {"encode"},
    "builtins": {
        *("bool", "bytearray", "bytes", "complex", "dict", "float", "frozenset", "int", "list"),
        *("object", "set", "slice", "str", "tuple", "type"),
    },
    "collections": {"OrderedDict", "defaultdict"},
    "inspect": {"FullArgSpec"},
    "numpy": {"dtype", "ndarray"},
    "numpy.core": {"_DType_reconstruct"},
    "numpy.core.multiarray": {"_reconstruct", "scalar"},
    "numpy.core.numeric": {"_frombuffer"},
    # Annotations of a forward method, in FullArgSpec: Optional[int], list[int], int | None.
    "functools": {"reduce"},
    "operator": {"getitem", "or_"},
    "types": {"EllipsisType", "GenericAlias", "NoneType"},
}

VALUES: dict[tuple[str, str], object] = {("builtins", "Ellipsis"): Ellipsis}

NUMPY_SCALARS = {
    **{name: np.dtype(name) for name in ("int8", "int16", "int32", "int64")},
    **{name: np.dtype(name) for name in ("uint8", "uint16", "uint32", "uint64")},
    **{name: np.dtype(name) for name in ("float16", "float32", "float64")},
    **{name: np.dtype(name) for name in ("complex64", "complex128")},
    "bool": np.dtype("bool"),
    "bool_": np.dtype("bool"),
}

INSTANCE_PACKAGES = (
    "megengine.core._imperative_rt.",
    "megengine.module.",
    "megengine.quantization.",
    "megengine.traced_module.",
)

# sys.stdlib_module_names knows only the Python that runs now. Modules that other versions have and
# that start programs or import code; harmless ones may be names of the user's own modules.
STANDARD_LIBRARY_OF_OTHER_VERSIONS = frozenset({
    *("__builtin__", "asynchat", "asyncore", "cPickle", "commands", "copy_reg", "crypt"),
    *("distutils", "exceptions", "imp", "lib2to3", "nt", "os2", "pipes", "popen2", "posix"),
    *("rexec", "smtpd", "telnetlib", "thread", "urllib2", "xmlrpclib"),
})  # fmt: skip


def look_up(module: str, name: str) -> object:
    """Returns the replacement of a global: a GlobalRef, an np.dtype or Ellipsis.

    Raises: PickleFault TM1004 for a name that no rule above admits, TM1003 for what is no name.
    """
    _check_spelling(module, name)
    module = MODULE_SPELLINGS.get(module, module)
    name = NAME_SPELLINGS.get((module, name), name)
    if (module, name) in VALUES:
        return VALUES[module, name]
    if module == "numpy" and name in NUMPY_SCALARS:
        return NUMPY_SCALARS[name]
    if name in KNOWN.get(module, ()) or module in OF_TYPE_HINTS or _is_dtype_class(module, name):
        return GlobalRef(module, name)
    package = module.partition(".")[0]
    if package == "numpy" or is_standard_library(package):
        raise refused(f"refused global {module}.{name}")
    return GlobalRef(module, name)


def is_standard_library(package: str) -> bool:
    """Whether a top-level module name belongs to Python itself, of whatever version."""
    return package in sys.stdlib_module_names or package in STANDARD_LIBRARY_OF_OTHER_VERSIONS


def makes_instance(reference: GlobalRef) -> bool:
    """Whether objects of this class are loaded as an Instance."""
    return f"{reference.module}.".startswith(INSTANCE_PACKAGES) or is_users_class(reference)


def is_users_own(reference: GlobalRef) -> bool:
    """Whether a name belongs neither to Python, nor to NumPy, nor to MegEngine."""
    package = reference.module.partition(".")[0]
    return package not in ("megengine", "numpy") and not is_standard_library(package)


def is_users_class(reference: GlobalRef) -> bool:
    """Whether a name outside of known packages looks like a class: ``Block``, ``nets.Outer.Inner``."""
    return is_users_own(reference) and reference.name.rpartition(".")[2].lstrip("_")[:1].isupper()


def _is_dtype_class(module: str, name: str) -> bool:
    return module == "numpy.dtypes" and name.endswith("DType")


def _check_spelling(module: str, name: str) -> None:
    if len(module) + len(name) > NAME_LENGTH_LIMIT:
        raise damaged(f"a global's name is {len(module) + len(name)} characters long")
    for part in (*module.split("."), *name.split(".")):
        if not part.isidentifier():
            raise damaged(f"a global's name is {module!r}, {name!r}, which is not a Python identifier")
