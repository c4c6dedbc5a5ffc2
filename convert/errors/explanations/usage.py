"""What the error codes of wrong options and arguments mean."""

from __future__ import annotations

from tmconvert.errors.explanation import Explanation

USAGE = {
    "TM6001": Explanation(
        "there is no such target or version",
        "The target, the opset or the Caffe dialect is none of those that tmconvert writes.",
        "tmconvert onnx model.tm out.onnx --opset 99",
        "Use one of those that the message lists.",
    ),
    "TM6002": Explanation(
        "there is no such layout of inputs and outputs",
        'TFLite inputs and outputs are stored channels-last ("nhwc") or as the source has them ("source").',
        'tmconvert.to_tflite(tm, "out.tflite", io_layout="nchw")',
        'Use "nhwc" or "source".',
    ),
    "TM6003": Explanation(
        "inputs do not fit the model",
        "There are too many or too few arrays, or one has another shape or dtype than the model's input.",
        "float64 arrays for a float32 input",
        "`tmconvert inspect MODEL` shows names, dtypes and shapes; astype and reshape change arrays.",
    ),
    "TM6004": Explanation(
        "a module has no graph to run",
        "Builtin modules, such as a Conv2d, have a meaning but no graph; they run as part of a model only.",
        'tm.get("conv1")(x)',
        "Run the module that holds it.",
    ),
    "TM6005": Explanation(
        "a graph has no typed text form",
        "Only flat graphs of aten-style ops have one.",
        "tm.graph.to_text(), right after loading",
        "Print str(graph), or dump the graph of a conversion with --dump-after.",
    ),
    "TM6006": Explanation(
        "there is no such pass",
        "--dump-after or --stop-after names a pass that the target's pipeline does not have.",
        "--dump-after fuse_everything",
        "Use a name that the message lists, or 'all'.",
    ),
    "TM6007": Explanation(
        "two outputs are the same file",
        "The prototxt and the caffemodel need names of their own.",
        "tmconvert caffe model.tm net.caffemodel",
        "Give the prototxt first, then the caffemodel.",
    ),
    "TM6008": Explanation(
        "an object cannot be converted",
        "Conversions take a TracedModule, the path of a model file, or a PyTorch module with the inputs that "
        "it is traced with.",
        'tmconvert.to_onnx({"weights": array}, "out.onnx")',
        "Give one of these; for a PyTorch module example_inputs=(x, ...), or --input for each input.",
    ),
    "TM6010": Explanation(
        "the command line is wrong",
        "A command or option does not exist, an argument is missing, or a value is not of the right kind.",
        "tmconvert onnx model.tm",
        "`tmconvert COMMAND --help` shows arguments and options.",
    ),
    "TM6011": Explanation(
        "a file of inputs cannot be used",
        "It cannot be read, is no .npz file, holds Python objects, or lacks an array for an input.",
        "tmconvert verify model.tm out.onnx --inputs photo.png",
        "Save the arrays with numpy.savez, named as the inputs of the model, or in0, in1, ... in order.",
    ),
    "TM6012": Explanation(
        "there is no such error code",
        "Codes are TM and four digits.",
        "tmconvert explain TM0000",
        "`tmconvert explain` lists all codes.",
    ),
    "TM6013": Explanation(
        "the output is the model itself",
        "Writing there would replace the model that is read. Links to the same file count as one.",
        "tmconvert onnx net.tm net.tm",
        "Give the output a name of its own.",
    ),
    "TM6014": Explanation(
        "an input, node or size that was named does not fit the model",
        "Options such as --input-shape, --dynamic, --inputs, --outputs and --rename name inputs by the "
        "arguments of forward, and nodes as `tmconvert inspect --graph` and the written model call them.",
        "tmconvert onnx net.tm net.onnx --outputs head_conv",
        "Use one of the names that the error lists.",
    ),
    "TM6020": Explanation(
        "a plugin cannot be loaded",
        "A plugin is a Python file that calls tmconvert.register_symbolic; it is run. Installed packages "
        "name theirs under the entry-point group tmconvert.symbolics.",
        "tmconvert onnx net.tm net.onnx --plugin my_ops.py, where my_ops.py raises",
        "Correct the plugin at the line that the message names, or leave it out.",
    ),
    "TM6021": Explanation(
        "a symbolic cannot be registered",
        "Its target is none of ours, or the parameters of the functions of one op are not the same.",
        "register_symbolic('mylib::swish', lambda g, x: x, target='onix')",
        "The message says what does not fit; docs/custom-ops.md has examples.",
    ),
    "TM6022": Explanation(
        "a function that was registered for an op failed",
        "It raised, or returned another number of results than the op has.",
        "a symbolic that returns None",
        "Correct the function at the line that the message names.",
    ),
}
