"""Explanations of the error codes of wrong options and arguments."""

from __future__ import annotations

from tmconvert.errors.explanation import Explanation

USAGE = {
    "TM6001": Explanation(
        "unknown target or version",
        "tmconvert does not write this target, opset or Caffe dialect.",
        "tmconvert onnx model.tm out.onnx --opset 99",
        "Use one of those that the message lists.",
    ),
    "TM6002": Explanation(
        "unknown layout of inputs and outputs",
        'TFLite inputs and outputs are stored channels-last ("nhwc") or as the source has them ("source").',
        'tmconvert.to_tflite(tm, "out.tflite", io_layout="nchw")',
        'Use "nhwc" or "source".',
    ),
    "TM6003": Explanation(
        "inputs do not fit the model",
        "There are too many or too few arrays, or the shape or dtype of one differs from the model's input.",
        "float64 arrays for a float32 input",
        "`tmconvert inspect MODEL` shows names, dtypes and shapes; astype and reshape change arrays.",
    ),
    "TM6004": Explanation(
        "a module has no graph to run",
        "Built-in modules, such as a Conv2d, have no graph of their own; they run only as part of a model.",
        'tm.get("conv1")(x)',
        "Run the module that contains it.",
    ),
    "TM6005": Explanation(
        "a graph has no typed text form",
        "Only flat graphs of ATen-style ops have one.",
        "tm.graph.to_text(), right after loading",
        "Print str(graph), or dump the graph of a conversion with --dump-after.",
    ),
    "TM6006": Explanation(
        "unknown pass",
        "--dump-after or --stop-after names a pass that the target's pipeline does not have.",
        "--dump-after fuse_everything",
        "Use a name that the message lists, or 'all'.",
    ),
    "TM6007": Explanation(
        "two outputs are the same file",
        "The prototxt and the caffemodel need different file names.",
        "tmconvert caffe model.tm net.caffemodel",
        "Pass the prototxt first, then the caffemodel.",
    ),
    "TM6008": Explanation(
        "an object cannot be converted",
        "Conversions accept a TracedModule, the path of a model file, or a PyTorch module with its "
        "example inputs.",
        'tmconvert.to_onnx({"weights": array}, "out.onnx")',
        "Pass one of these; for a PyTorch module also example_inputs=(x, ...), or --input for each input.",
    ),
    "TM6009": Explanation(
        "an argument of a function is unknown, missing, or has the wrong type",
        "The message names the argument, what it must be, and what was given.",
        'tmconvert.to_onnx(model, "out.onnx", verify="no")',
        "Give the argument that the message names, with a value of its type.",
    ),
    "TM6010": Explanation(
        "the command line is wrong",
        "A command or option does not exist, an argument is missing, or a value is not of the right kind.",
        "tmconvert onnx model.tm",
        "`tmconvert COMMAND --help` shows arguments and options.",
    ),
    "TM6011": Explanation(
        "a file of inputs cannot be used",
        "It cannot be read, is not an .npz file, holds Python objects, or lacks an array for an input.",
        "tmconvert verify model.tm out.onnx --inputs photo.png",
        "Save the arrays with numpy.savez, named as the inputs of the model, or in0, in1, ... in order.",
    ),
    "TM6012": Explanation(
        "unknown error code",
        "Codes consist of TM and four digits.",
        "tmconvert explain TM0000",
        "`tmconvert explain` lists all codes.",
    ),
    "TM6013": Explanation(
        "the output is the model itself",
        "Writing there would replace the model that is read. Links to the same file count as the same file.",
        "tmconvert onnx net.tm net.tm",
        "Choose another path for the output.",
    ),
    "TM6014": Explanation(
        "an input, node or dimension name does not belong to the model",
        "Options such as --input-shape, --dynamic, --inputs, --outputs and --rename identify inputs "
        "by the arguments of forward, and nodes by the names of `tmconvert inspect --graph` and of "
        "the written model.",
        "tmconvert onnx net.tm net.onnx --outputs head_conv",
        "Use one of the names that the error lists.",
    ),
    "TM6020": Explanation(
        "a plugin cannot be loaded",
        "A plugin is a Python file that registers ops, passes or kinds of files; tmconvert runs it. "
        "Installed packages list theirs in the entry-point groups tmconvert.symbolics and "
        "tmconvert.frontends.",
        "tmconvert onnx net.tm net.onnx --plugin my_ops.py, where my_ops.py raises",
        "Correct the plugin at the line that the message names, or omit it.",
    ),
    "TM6021": Explanation(
        "a symbolic cannot be registered",
        "Its target does not exist, or the functions of one op have different parameters.",
        "register_symbolic('mylib::swish', lambda g, x: x, target='onix')",
        "The message names the mismatch; docs/custom-ops.md has examples.",
    ),
    "TM6022": Explanation(
        "a function that was registered for an op failed",
        "It raised an exception, or returned another number of results than the op has.",
        "a symbolic that returns None",
        "Correct the function at the line that the message names.",
    ),
    "TM6071": Explanation(
        "the name of a class is not an identifier of Python",
        "The code of a model is a class, whose name is chosen with --class-name or class_name=.",
        "tmconvert code model.tm -o net --class-name 'my net'",
        "Pass a name of letters, digits and underscores that is not a keyword, such as Net.",
    ),
    "TM6091": Explanation(
        "a configuration file is not valid",
        "It is not TOML, has an unknown table, key or option or a value of another type, or two models would "
        "be written to one file.",
        "opsett = 17 in the table [onnx] of tmconvert.toml",
        "Correct what the message names; `tmconvert init` writes a file with all options as comments.",
    ),
    "TM6092": Explanation(
        "the process of a conversion ended",
        "It was killed, or a library aborted it. The work was tried again in a process of its own.",
        "a conversion that needs more memory than the machine has",
        "Convert the model alone, with `tmconvert TARGET MODEL OUT`; use fewer --jobs.",
    ),
    "TM6093": Explanation(
        "the cluster cannot be used",
        "The package `distributed` is not installed, or no Dask scheduler answers at the address.",
        "tmconvert convert --cluster tcp://10.0.0.5:8786",
        "Run `pip install 'tmconvert[cluster]'`, and start `dask scheduler` and `dask worker ADDRESS`.",
    ),
}
