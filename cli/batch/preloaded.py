"""Imports the modules of conversions, once for all processes that the server of ``--jobs`` forks.

No model is read and nothing is computed here, so that no thread of PyTorch or of a runtime is running.
"""

import numpy.random  # noqa: F401
