"""What each error code means: ``tmconvert explain TM2003`` prints it."""

from __future__ import annotations

from tmconvert.errors.explanation import Explanation
from tmconvert.errors.explanations.quantization import QUANTIZATION
from tmconvert.errors.explanations.tracing import TORCH
from tmconvert.errors.explanations.usage import USAGE

_COPY_AGAIN = "Copy the file again, compare its size with the original, or save the model again in MegEngine."
_SAVE_AGAIN = "Copy the file again, or make it anew from the original with 'tmconvert save MODEL OUT.tm'."
_REPORT = (
    "This is a defect of tmconvert, not of your model. Please report it with the command, the message and, "
    "if you can, the model. TMCONVERT_DEBUG=1 in the environment adds a traceback."
)

_LOADING = {
    "TM1001": Explanation(
        "a model file cannot be read",
        "The path does not exist, is a folder, or may not be read by you.",
        "tmconvert inspect no_such.tm",
        "Check the path and the permissions of the file.",
    ),
    "TM1002": Explanation(
        "a file is of no kind that tmconvert reads",
        "The first bytes are not those of a .tm file. The name of a file plays no part in this.",
        "tmconvert inspect photo.png",
        "Give a file that megengine.save wrote from a TracedModule, or tmconvert save from any model.",
    ),
    "TM1003": Explanation(
        "a model file is damaged or truncated",
        "The pickle inside the file breaks the rules of pickles, mostly because a copy was cut short.",
        "head -c 100000 model.tm > part.tm; tmconvert inspect part.tm",
        _COPY_AGAIN,
    ),
    "TM1004": Explanation(
        "a model file asks for something that no model needs",
        "A .tm file is a pickle, and a pickle can name any function of Python to be called. tmconvert calls "
        "none of them, and refuses files that name others than those a TracedModule is made of.",
        "a file whose pickle names posix.system",
        "Do not load such a file in MegEngine unless you trust its origin. If you do, load it there and save "
        "only the traced module.",
    ),
    "TM1005": Explanation(
        "a pickle holds something else than a TracedModule",
        "The file is sound, but was saved from another object: a state dict, a tensor, a plain Module.",
        'megengine.save(net.state_dict(), "model.tm")',
        "Trace the module with megengine.traced_module.trace_module and save the result of that.",
    ),
    "TM1006": Explanation(
        "a model file would cost time or memory out of proportion to its size",
        "The file nests or repeats its parts far beyond what any model does.",
        "modules nested more than 100 deep",
        "Files like this are made by hand, to do harm. If a tool of yours wrote it, report it with the file.",
    ),
    "TM1007": Explanation(
        "a file holds a TracedModule that makes no sense",
        "The pickle is sound, but its graph is not: a node is used before it is made, or a field is missing.",
        "a file changed by hand, or written by a fork of MegEngine",
        _COPY_AGAIN,
    ),
    "TM1009": Explanation(
        "a file to verify is no ONNX, TFLite or Caffe model",
        "The content of the second file given to verify is not of a format that tmconvert writes.",
        "tmconvert verify model.tm notes.txt",
        "Give the .onnx, .tflite or .prototxt file; a caffemodel is found beside its prototxt.",
    ),
    "TM1010": Explanation(
        "the archive of a container is damaged or truncated",
        "A .tm file of tmconvert is a ZIP archive whose lengths and offsets must agree with each other and "
        "with the size of the file; mostly a copy was cut short.",
        "head -c 100000 saved.tm > part.tm; tmconvert inspect part.tm",
        _SAVE_AGAIN,
    ),
    "TM1011": Explanation(
        "a container has a member that it must not have",
        "A container has tm.json and weights.safetensors and may have example.safetensors, each once, "
        "neither compressed nor encrypted, and nothing else.",
        "zip -9 again.zip tm.json weights.safetensors; tmconvert inspect again.zip",
        _SAVE_AGAIN,
    ),
    "TM1012": Explanation(
        "a container was made by a newer tmconvert",
        "The file follows a version of the format, or has words of a framework, that this release does not "
        "know.",
        "a file saved by a release of next year",
        "Update tmconvert, or save the model again with the release that you have.",
    ),
    "TM1013": Explanation(
        "a JSON text in a container is damaged",
        "tm.json or the header of a safetensors member is no JSON, names a key twice, or is not what its "
        "checksum says.",
        "a file in which an editor changed tm.json",
        _SAVE_AGAIN,
    ),
    "TM1014": Explanation(
        "the tensors of a container do not fit their member, or are damaged",
        "Two tensors overlap, one reaches beyond the file, is not aligned, or has another number of bytes "
        "than its shape and element type need; or their bytes are not those that the checksum was made of.",
        "a file in which a shape was changed by hand, or one that was copied over a bad line",
        _SAVE_AGAIN,
    ),
    "TM1015": Explanation(
        "a container describes a model that makes no sense",
        "The text is sound JSON, but not a model: a node is used before it is made, a module refers to "
        "itself, or an entry is missing.",
        "a file in which an expression was removed by hand",
        _SAVE_AGAIN,
    ),
    "TM1016": Explanation(
        "a Caffe file cannot be read",
        "The prototxt is no net in protobuf's text form or has unknown fields, or the caffemodel is no net.",
        "a prototxt with an unclosed brace",
        "`tmconvert lint FILE.prototxt --dialect NAME` lists all that is wrong, with the lines.",
    ),
    "TM1101": Explanation(
        "the text of a graph cannot be parsed",
        "The text breaks the grammar of the typed text form; the message has line and column.",
        "%y = aten::relu(%x : f32[2,3]",
        "Correct the text at that place. The form is what --dump-after writes.",
    ),
}

_MODEL = {
    "TM2001": Explanation(
        "a call of the model cannot be computed",
        "The reference interpreter met a function or module that it does not know, or arguments beyond it.",
        'tmconvert.load("model.tm")(x) of a model with an unknown function',
        "Write this part of the model with functions that `tmconvert ops` lists.",
    ),
    "TM2003": Explanation(
        "the target cannot express an op of the model",
        "The target has no operator for the op, not in this version, or not with these arguments; or "
        "tmconvert does not know the op at all.",
        "tmconvert caffe vit.tm vit.prototxt",
        "`tmconvert check MODEL --target T` lists all such ops with places and hints. Often a later --opset "
        "helps, another target, or another way to write this part of the model.",
    ),
    "TM2006": Explanation(
        "a module of the model calls itself",
        "Targets have graphs without calls, so submodules are put in line. A recursion has no end there.",
        "a module whose graph calls the same module",
        "Unroll the recursion in the model, and trace it again.",
    ),
    "TM2007": Explanation(
        "a module was not traced for a call that the model makes",
        "A TracedModule keeps a graph for each structure of arguments with which it was called. The model "
        "calls it with another one, mostly after an edit of its graphs.",
        "traced with f(x), called as f(x, y)",
        "Trace the model again, with inputs that make all its calls.",
    ),
    "TM2008": Explanation(
        "the model is too large once its submodules are in line",
        "Calls of calls of calls grew to more than 50,000 expressions.",
        "30 levels of modules, each calling the next one twice",
        "Share less, or split the model.",
    ),
    "TM2009": Explanation(
        "the model does not record the shape and type of an input",
        "Conversions need static shapes. MegEngine records them while it traces.",
        "a graph with an input that was added by hand",
        "Trace the model again with an input of the wanted shape.",
    ),
    "TM2010": Explanation(
        "the model returns something that is no tensor",
        "A file of a target has tensors as its outputs, nothing else.",
        "def forward(self, x): return x, 3",
        "Return tensors only, from the module or from a small module around it.",
    ),
    "TM2014": Explanation(
        "the module takes or returns complex numbers",
        "No target has tensors of complex numbers. Inside a model they are pairs of real ones.",
        "def forward(self, x): return torch.fft.fft(x)",
        "Return torch.view_as_real of them, or abs(); take a real tensor and use torch.view_as_complex.",
    ),
    "TM2017": Explanation(
        "the symbolic of an autograd.Function failed",
        "It raised, or returned another number of results than forward; or the name of an attribute does not "
        "end in _i, _f, _s or _t.",
        "g.op('LeakyRelu', x, alpha=0.1), which should be alpha_f=0.1",
        "Correct the method at the line that the message names; docs/custom-ops.md has an example.",
    ),
    "TM2018": Explanation(
        "a function that torch.cond or torch.while_loop calls does what a graph cannot",
        "Both branches return tensors of the same types, the body of a loop those that it is given, and none "
        "writes to a tensor that was there before.",
        "torch.cond(x.sum() > 0, lambda x: x[:1], lambda x: x, (x,))",
        "Pad what the branches return to one size, or choose with torch.where.",
    ),
    "TM2019": Explanation(
        "the Caffe net is beyond a limit of its dialect",
        "The layers are the dialect's, but its reader does not take a number in one of them.",
        "tmconvert caffe model.tm model.prototxt --dialect nnie",
        "`tmconvert check MODEL --target caffe --dialect NAME` lists all by rule, with what to do.",
    ),
    "TM2030": Explanation(
        "a size that was to stay open can do so in a range only",
        "The model compares the size with a number, and does something else on the other side of it. A file "
        "has one way only, so it would compute something wrong there. Where the model itself fails on the "
        "other side, such as beyond a table of positions, this is no error.",
        "x = x[:, :-1] if x.shape[1] > 512 else x",
        "Accept the range with --accept-range (accept_range=True): the report and the file's metadata "
        "(`tmconvert.size_ranges`) then state it, and whoever runs the file has to keep it. Or leave the "
        "size out of --dynamic, or change the model so that it does the same at every size.",
    ),
}

_GRAPH = {
    "TM3002": Explanation(
        "an edit of a graph would break its links",
        "An expression was inserted twice, removed while it is in use, or belongs to another graph.",
        "graph.remove(expr), while a later expression uses its output",
        "In code of your own: redirect the uses first, with replace_uses. Otherwise: " + _REPORT,
    ),
    "TM3003": Explanation(
        "two nodes of a graph have the same name",
        "Names are unique within a graph.",
        'graph.rename(node, "x"), where x exists',
        "In code of your own: take a name of graph.free_name. Otherwise: " + _REPORT,
    ),
    "TM3004": Explanation(
        "arguments do not fit the signature of an op",
        "An argument is missing, one too many, or of the wrong kind or dtype.",
        "aten::conv2d without a weight",
        "In a symbolic or adapter of your own: compare with the op's signature. Otherwise: " + _REPORT,
    ),
    "TM3005": Explanation(
        "an op, symbolic or adapter is registered twice",
        "Two functions claim the same op, target and version; the message names both.",
        "two functions under @relu.onnx(since=7)",
        "Remove one of the two, or give it another version.",
    ),
    "TM3006": Explanation(
        "an op has no reference kernel",
        "The reference interpreter has nothing to compute the op with.",
        "an op of your own without @op.reference",
        "Give the op a kernel. For an op of tmconvert: " + _REPORT,
    ),
    "TM3007": Explanation(
        "passes are in the wrong order",
        "A pass says that it must run after another one, which does not come before it.",
        'after=("fold_constants",), in a pipeline that folds later',
        "Reorder the pipeline. In a pipeline of tmconvert: " + _REPORT,
    ),
    "TM3008": Explanation(
        "a node of a graph stands for a module that is not there",
        "An attribute is taken of a module that does not have it, or is used as a module and is none.",
        'getattr(self, "conv"), where the module has no child conv',
        "In code of your own: add the child first. Otherwise: " + _REPORT,
    ),
    "TM3011": Explanation(
        "a pass left a value that is used before it is defined",
        "Found by the verifier, which runs after each pass; the message names the pass.",
        "%y = aten::relu(%z), above the definition of %z",
        _REPORT,
    ),
    "TM3012": Explanation(
        "a pass left links between values and their users that are wrong",
        "Found by the verifier: a value has two producers, or its recorded uses are not the actual ones.",
        "an argument that was replaced without the graph's methods",
        _REPORT,
    ),
    "TM3013": Explanation(
        "a pass left a name that is taken or not valid",
        "Found by the verifier: names are unique, and can be written in the text form.",
        "two values called %x",
        _REPORT,
    ),
    "TM3014": Explanation(
        "a pass left an op that is unknown or has the wrong arguments",
        "Found by the verifier: a normalized graph has ops of the catalogue only, bound to their signatures.",
        "aten::relu(%x, %y)",
        _REPORT,
    ),
    "TM3015": Explanation(
        "a pass left a value of another type than its op computes",
        "Found by the verifier, which computes the type of each result again.",
        "%y = aten::relu(%x : f32[2,3]) : f32[3,2]",
        _REPORT,
    ),
    "TM3016": Explanation(
        "a pass left a constant that is not of its declared type",
        "Found by the verifier.",
        "a float64 array, declared f32",
        _REPORT,
    ),
    "TM3017": Explanation(
        "a pass left quantization parameters that make no sense",
        "Found by the verifier: scales are positive and finite, zero points lie within the integer range, "
        "and there is one of each, or one for each channel.",
        "scale=[0.0]",
        _REPORT,
    ),
    "TM3018": Explanation(
        "a pass left an expression without an origin",
        "Found by the verifier: each expression has a place in the model, or the name of its pass.",
        "an expression without source and made_by",
        _REPORT,
    ),
    "TM3019": Explanation(
        "a pass left a tensor in a memory order that its user does not work in",
        "Found when layouts have been assigned: spatial ops work channels-last, elementwise ops on operands "
        "of one order.",
        "a pooling whose operand is in the order of the source",
        _REPORT,
    ),
}

_VERIFICATION = {
    "TM4001": Explanation(
        "a written file does not compute what its source computes",
        "The file ran, and an output differs from the reference by more than the limit for its dtype. A "
        "conversion that ends like this leaves no file.",
        "tmconvert verify model.tm other.onnx",
        "Check that the two files belong together, and that the options are those of the conversion. Of a "
        "fresh file the help of the message says what is known: kernels that compute "
        "otherwise on this processor, outputs that are nothing but rounding errors, equal numbers that may "
        "come in any order. Integer kernels of ONNX Runtime for uint8 and int8 saturate on x86 processors "
        "without VNNI (AMD Zen 1 to 3, Intel before Ice Lake), where --weight-type uint8 and --reduce-range "
        "are exact. Where it says nothing, please report it. --no-verify writes the file anyway.",
    ),
    "TM4002": Explanation(
        "a runtime refuses a written file",
        "The runtime cannot load or run the file or these inputs; or it ended its own process on it, "
        "or did not finish in ten minutes and a second for each 256 KiB of the file and its inputs.",
        "tmconvert verify small.tm large.onnx: the inputs have other shapes",
        "Check that the two files belong together. ONNX Runtime has few operators for float64: give it the "
        "model in float32, or --no-verify for another runtime. TMCONVERT_RUNTIME_SECONDS=N in the "
        "environment allows N seconds instead. Otherwise please report it with the message.",
    ),
    "TM4003": Explanation(
        "no runtime for the file is installed",
        "ONNX files run in ONNX Runtime, TFLite files in LiteRT, Caffe nets in OpenCV 4.",
        "tmconvert verify model.tm model.onnx, without onnxruntime",
        "Install the package that the message names, or all with: pip install 'tmconvert[runtimes]'",
    ),
    "TM4004": Explanation(
        "the installed runtime is too old for a written file",
        "The file uses a version of the format that came after the installed runtime. A conversion writes "
        "the file all the same, and says that it was not verified.",
        "tmconvert verify model.tm model.onnx, with an opset newer than the installed ONNX Runtime",
        "Update the runtime, or choose an older --opset.",
    ),
    "TM4005": Explanation(
        "there is nothing to compare a file with",
        "The model has an op of a library of yours, which tmconvert cannot compute, and no example of what "
        "its source computed that fits these inputs.",
        "tmconvert verify model.tm model.onnx --inputs other.npz --plugin my_ops.py",
        "Give register_symbolic a reference=, a function that computes the op on NumPy arrays.",
    ),
}

_WRITING = {
    "TM5001": Explanation(
        "an output cannot be written",
        "The folder does not exist or may not be written to, the disk is full, or the path is a folder.",
        "tmconvert onnx model.tm /no/such/folder/out.onnx",
        "The message says what is wrong. Nothing was written; an older file is as it was.",
    ),
    "TM5002": Explanation(
        "the model is larger than the format allows",
        "A protobuf message ends at 2 GiB, and a caffemodel is one.",
        "a model with 600 million float32 parameters, to Caffe",
        "Split the model, or convert to another target: ONNX and TFLite files can be larger.",
    ),
    "TM5003": Explanation(
        "there is not enough memory",
        "The system refused memory to tmconvert.",
        "a model with very large activations, verified on a small machine",
        "Close other programs, use a larger machine, or leave out the verification with --no-verify.",
    ),
    "TM5004": Explanation(
        "a model has something that a container cannot hold",
        "Attributes and constants may be numbers, text, tensors, modules, and lists and dicts of these. The "
        "message names the attribute and what it is.",
        "a module with an attribute that is an open file",
        "Remove the attribute, or convert from the original file instead.",
    ),
}

_DEFECTS = {
    "TM9000": Explanation(
        "something unexpected went wrong",
        "An exception came up that nobody thought of.",
        "TypeError: 'NoneType' object is not subscriptable",
        _REPORT,
    ),
    "TM9001": Explanation(
        "a writer was handed a graph that it cannot write",
        "The lowering made a constant of the wrong type, a name twice, or a value that nothing computes.",
        "constant 'w' is declared float32[3] and holds float64[3]",
        _REPORT,
    ),
    "TM9002": Explanation(
        "a written ONNX model is not valid",
        "ONNX's own checker refuses the file. It was removed again.",
        "a node without an input that its operator requires",
        _REPORT,
    ),
    "TM9004": Explanation(
        "a symbolic or decomposition failed",
        "It raised an exception, or returned values of another number, shape or dtype than the op has.",
        "relu_onnx6 failed: missing argument",
        "If the symbolic is your own, correct it. Otherwise: " + _REPORT,
    ),
    "TM9005": Explanation(
        "a part of tmconvert does not take symbolic sizes",
        "It computed with a size that --dynamic leaves open as if it were a number, and failed.",
        "getitem_out (Tensor.__getitem__) does not take symbolic sizes",
        "The model can be converted without --dynamic. " + _REPORT,
    ),
}

_ALL = {
    **_LOADING,
    **_MODEL,
    **_GRAPH,
    **_VERIFICATION,
    **_WRITING,
    **_DEFECTS,
    **USAGE,
    **TORCH,
    **QUANTIZATION,
}
EXPLANATIONS: dict[str, Explanation] = dict(sorted(_ALL.items()))
