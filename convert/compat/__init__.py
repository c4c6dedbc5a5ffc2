"""Functions with the signatures of other tools, which convert with tmconvert.

``torch_onnx.export``, ``onnxsim.simplify``, ``onnxslim.slim`` and the functions of ``mgeconvert``. A keyword
that has no meaning here is accepted with a warning that states why; one that would change the result and
cannot be followed is a UsageError TM6002.
"""
