"""The explanation of each error code; ``tmconvert explain TM2003`` prints one."""

from __future__ import annotations

from tmconvert.errors.explanation import Explanation
from tmconvert.errors.explanations.caffe import CAFFE
from tmconvert.errors.explanations.onnx import ONNX
from tmconvert.errors.explanations.quantization import QUANTIZATION
from tmconvert.errors.explanations.tflite import TFLITE
from tmconvert.errors.explanations.tracing import TORCH
from tmconvert.errors.explanations.transform import TRANSFORM
from tmconvert.errors.explanations.usage import USAGE

_COPY_AGAIN = "Copy the file again, compare its size with the original, or save the model again in MegEngine."
_SAVE_AGAIN = "Copy the file again, or write it again from the original with 'tmconvert save MODEL OUT.tm'."
_REPORT = (
    "This is a defect of tmconvert, not of your model. Please report it with the command, the message and, "
    "if you can, the model. TMCONVERT_DEBUG=1 in the environment adds a traceback."
)

_LOADING = {
    "TM1001": Explanation(
        "a model file cannot be read",
        "The path does not exist, is a folder, or you have no permission to read it.",
        "tmconvert inspect no_such.tm",
        "Check the path and the permissions of the file.",
    ),
    "TM1002": Explanation(
        "a file is not of a format that tmconvert reads",
        "The first bytes are not those of a kind of file that tmconvert or a plugin reads. The file's name "
        "is not considered.",
        "tmconvert inspect photo.png",
        "Pass a file that megengine.save wrote from a TracedModule, or that tmconvert save wrote from "
        "any model.",
    ),
    "TM1003": Explanation(
        "a model file is damaged or truncated",
        "The pickle inside the file violates the pickle format, mostly because a copy was cut short.",
        "head -c 100000 model.tm > part.tm; tmconvert inspect part.tm",
        _COPY_AGAIN,
    ),
    "TM1004": Explanation(
        "a model file refers to functions or classes that no model needs",
        "A .tm file is a pickle, and a pickle can name any Python function to be called when it is "
        "loaded. tmconvert calls none of them, and refuses files that name functions or classes that "
        "a TracedModule does not consist of.",
        "a file whose pickle names posix.system",
        "Do not load such a file in MegEngine unless you trust its origin. If you do, load it there and save "
        "only the traced module.",
    ),
    "TM1005": Explanation(
        "a pickle holds an object that is not a TracedModule",
        "The file is intact, but was saved from another object: a state dict, a tensor, a plain Module.",
        'megengine.save(net.state_dict(), "model.tm")',
        "Trace the module with megengine.traced_module.trace_module and save the result of that.",
    ),
    "TM1006": Explanation(
        "reading a model file would take time or memory out of proportion to its size",
        "The file nests or repeats its elements far beyond what any model does.",
        "modules nested more than 100 deep",
        "Such files are usually crafted to exhaust the reader. If a tool of yours wrote it, report it "
        "with the file.",
    ),
    "TM1007": Explanation(
        "a file holds an inconsistent TracedModule",
        "The pickle is valid, but its graph is not: a node is used before it is defined, or a field "
        "is missing.",
        "a file edited by hand, or written by a fork of MegEngine",
        _COPY_AGAIN,
    ),
    "TM1009": Explanation(
        "a file is not one that a conversion writes",
        "verify, bench and their like take an ONNX or TFLite file, a prototxt, or a file of a target that "
        "another package adds. Such a target may also lack what the command needs.",
        "tmconvert verify model.tm notes.txt",
        "Pass the .onnx, .tflite or .prototxt file; a caffemodel is looked for next to its prototxt. "
        "Convert a source model first.",
    ),
    "TM1010": Explanation(
        "the archive of a container is damaged or truncated",
        "A .tm file of tmconvert is a ZIP archive. Its lengths and offsets do not agree with each "
        "other or with the size of the file, mostly because a copy was cut short.",
        "head -c 100000 saved.tm > part.tm; tmconvert inspect part.tm",
        _SAVE_AGAIN,
    ),
    "TM1011": Explanation(
        "a container has a member that is not allowed",
        "A container has the members tm.json and weights.safetensors and may have "
        "example.safetensors, each once, neither compressed nor encrypted, and no others.",
        "zip -9 again.zip tm.json weights.safetensors; tmconvert inspect again.zip",
        _SAVE_AGAIN,
    ),
    "TM1012": Explanation(
        "a container was written by a newer tmconvert",
        "The file follows a version of the format, or uses op names of a framework, that this release "
        "does not know.",
        "a file saved by a release of next year",
        "Update tmconvert, or save the model again with the release that you have. For op names of a "
        "frontend of your own, install its package, or use --plugin.",
    ),
    "TM1013": Explanation(
        "a JSON text in a container is damaged",
        "tm.json or the header of a safetensors member is not valid JSON, has a key twice, or does "
        "not match its checksum.",
        "a file in which an editor changed tm.json",
        _SAVE_AGAIN,
    ),
    "TM1014": Explanation(
        "the tensors of a container do not fit their member, or are damaged",
        "Two tensors overlap; one ends after the end of the file, is not aligned, or has another "
        "number of bytes than its shape and element type require; or the bytes do not match their "
        "checksum.",
        "a file in which a shape was edited by hand, or one that was damaged in transfer",
        _SAVE_AGAIN,
    ),
    "TM1015": Explanation(
        "a container describes an inconsistent model",
        "The JSON is valid, but the model is not: a node is used before it is defined, a module "
        "refers to itself, or an entry is missing.",
        "a file in which an expression was removed by hand",
        _SAVE_AGAIN,
    ),
    "TM1016": Explanation(
        "a Caffe file cannot be read",
        "The prototxt is not a net in protobuf's text format or has unknown fields, or the caffemodel "
        "is not a net.",
        "a prototxt with an unclosed brace",
        "`tmconvert lint FILE.prototxt --dialect NAME` lists all errors with their lines.",
    ),
    "TM1101": Explanation(
        "the text of a graph cannot be parsed",
        "The text violates the grammar of the typed text form; the message names line and column.",
        "%y = aten::relu(%x : f32[2,3]",
        "Correct the text at that line and column. --dump-after writes graphs in this form.",
    ),
}

_MODEL = {
    "TM2001": Explanation(
        "a call of the model cannot be computed",
        "The reference interpreter met a function or module that it does not implement, or arguments "
        "that it does not support.",
        'tmconvert.load("model.tm")(x) for a model with an unknown function',
        "Write this part of the model with functions that `tmconvert ops` lists.",
    ),
    "TM2003": Explanation(
        "the target cannot express an op of the model",
        "The target has no operator for the op, not in this version, or not with these arguments; or "
        "tmconvert does not know the op.",
        "tmconvert caffe vit.tm vit.prototxt",
        "`tmconvert check MODEL --target T` lists all such ops with source locations and hints. Often "
        "a later --opset, another target, or another formulation of this part of the model helps.",
    ),
    "TM2006": Explanation(
        "a module of the model calls itself",
        "Target graphs have no calls, so tmconvert inlines submodules. A recursive module cannot be inlined.",
        "a module whose graph calls the same module",
        "Unroll the recursion in the model, and trace it again.",
    ),
    "TM2007": Explanation(
        "a module was not traced for a call that the model makes",
        "A TracedModule keeps one graph for each structure of arguments with which it was called. The "
        "model calls it with another structure, mostly after an edit of its graphs.",
        "traced with f(x), called as f(x, y)",
        "Trace the model again, with inputs that exercise all its calls.",
    ),
    "TM2008": Explanation(
        "the model is too large after its submodules are inlined",
        "Inlining nested module calls produced more than 50,000 expressions.",
        "30 levels of modules, each calling the next one twice",
        "Call shared modules less often, or split the model.",
    ),
    "TM2009": Explanation(
        "the model does not record the shape and type of an input",
        "Conversions need the shape of each input. MegEngine records it while it traces.",
        "a graph with an input that was added by hand",
        "Trace the model again with an input of the intended shape.",
    ),
    "TM2010": Explanation(
        "the model returns a value that is not a tensor, or no tensor at all",
        "All outputs of a target file are tensors, and a file has at least one.",
        "def forward(self, x): return x, 3",
        "Return tensors only, from the module or from a small module around it.",
    ),
    "TM2017": Explanation(
        "the symbolic of an autograd.Function failed",
        "It raised an exception, or returned another number of results than forward; or the name of "
        "an attribute does not end in _i, _f, _s or _t.",
        "g.op('LeakyRelu', x, alpha=0.1), which should be alpha_f=0.1",
        "Correct the method at the line that the message names; docs/custom-ops.md has an example.",
    ),
    "TM2018": Explanation(
        "a function passed to torch.cond or torch.while_loop cannot become a subgraph",
        "Both branches must return tensors of the same types, a loop body must return the types of "
        "its arguments, and neither may write to a tensor from outside.",
        "torch.cond(x.sum() > 0, lambda x: x[:1], lambda x: x, (x,))",
        "Pad the results of both branches to one size, or select with torch.where.",
    ),
    "TM2019": Explanation(
        "the Caffe net exceeds a limit of its dialect",
        "The dialect has these layers, but its reader does not accept a parameter value of one of them.",
        "tmconvert caffe model.tm model.prototxt --dialect nnie",
        "`tmconvert check MODEL --target caffe --dialect NAME` lists all violations by rule, with remedies.",
    ),
    "TM2020": Explanation(
        "the module takes or returns complex tensors",
        "No target has complex tensors as inputs or outputs. Inside a model they are represented as "
        "pairs of real tensors.",
        "def forward(self, x): return torch.fft.fft(x)",
        "Return torch.view_as_real(y) or y.abs(); take a real tensor and apply torch.view_as_complex.",
    ),
    "TM2021": Explanation(
        "a call that is recorded whole writes to its argument",
        "A function of tmconvert.wrap, or a module that is a leaf, changed a tensor that it was given. The "
        "call in the graph has results only, so the change would be lost.",
        "@tmconvert.wrap\ndef double(x): return x.mul_(2)",
        "Let it return a new tensor, x * 2, or let tracing go through it.",
    ),
    "TM2030": Explanation(
        "a dimension that was requested to be dynamic is valid in a range only",
        "The model compares the dimension with a number and computes something else on the other "
        "side. A file has one branch only, and would compute a wrong result there. It is not "
        "an error where the model itself fails on the other side, such as beyond a table of position "
        "embeddings.",
        "x = x[:, :-1] if x.shape[1] > 512 else x",
        "Accept the range with --accept-range (accept_range=True): the report and the file's metadata "
        "(`tmconvert.size_ranges`) then state it, and the caller of the file has to respect it. Or "
        "leave the dimension out of --dynamic, or change the model so that it computes the same at "
        "every size.",
    ),
}

_GRAPH = {
    "TM3002": Explanation(
        "an edit of a graph would break its links",
        "An expression was inserted twice, removed while it is in use, or belongs to another graph.",
        "graph.remove(expr), while a later expression uses its output",
        "In code of your own: replace the uses first, with replace_uses. Otherwise: " + _REPORT,
    ),
    "TM3003": Explanation(
        "two nodes of a graph have the same name",
        "Names are unique within a graph.",
        'graph.rename(node, "x"), where x exists',
        "In code of your own: choose a name with graph.free_name. Otherwise: " + _REPORT,
    ),
    "TM3004": Explanation(
        "arguments do not fit the signature of an op",
        "An argument is missing, one too many, or of the wrong kind or dtype.",
        "aten::conv2d without a weight",
        "In a symbolic or adapter of your own: compare with the op's signature. Otherwise: " + _REPORT,
    ),
    "TM3005": Explanation(
        "an op, symbolic or adapter is registered twice",
        "Two functions are registered for the same op, target and version; the message names both.",
        "two functions under @relu.onnx(since=7)",
        "Remove one of the two, or give it another version.",
    ),
    "TM3006": Explanation(
        "an op has no reference kernel",
        "The reference interpreter has no kernel to compute the op.",
        "an op of your own without @op.reference",
        "Give the op a reference kernel. For an op of tmconvert: " + _REPORT,
    ),
    "TM3007": Explanation(
        "passes are in the wrong order",
        "A pass declares that it must run after another one, which the pipeline does not run before it.",
        'after=("fold_constants",), in a pipeline that folds later',
        "Reorder the pipeline. In a pipeline of tmconvert: " + _REPORT,
    ),
    "TM3008": Explanation(
        "a node of a graph refers to a module that does not exist",
        "An attribute is read from a module that does not have it, or a value that is not a module is "
        "used as one.",
        'getattr(self, "conv"), where the module has no child conv',
        "In code of your own: add the child first. Otherwise: " + _REPORT,
    ),
    "TM3011": Explanation(
        "an edit or a pass left a value that is used before it is defined",
        "graph.lint found it, or the verifier, which runs after each pass and names the pass.",
        "%y = aten::relu(%z), above the definition of %z",
        "After an edit of your own: change the arguments that the message names. Otherwise: " + _REPORT,
    ),
    "TM3012": Explanation(
        "an edit or a pass left inconsistent links between values and their users",
        "graph.lint or the verifier found it: a value has two producers, or its recorded uses are not the "
        "actual ones.",
        "an argument that was replaced without the graph's methods",
        "After an edit of your own: change the arguments that the message names. Otherwise: " + _REPORT,
    ),
    "TM3013": Explanation(
        "an edit or a pass left a name that is already used or not valid",
        "graph.lint or the verifier found it: names are unique, and can be written in the text form.",
        "two values called %x",
        "After an edit of your own: change the arguments that the message names. Otherwise: " + _REPORT,
    ),
    "TM3014": Explanation(
        "an edit or a pass left an op that is unknown or has the wrong arguments",
        "graph.lint or the verifier found it: a normalized graph has only ops of the catalogue, with "
        "arguments that fit their signatures.",
        "aten::relu(%x, %y)",
        "After an edit of your own: change the arguments that the message names. Otherwise: " + _REPORT,
    ),
    "TM3015": Explanation(
        "an edit or a pass left a value of another type than its op computes",
        "An edit is refused for it, or the verifier found it; both infer the types of results again.",
        "%y = aten::relu(%x : f32[2,3]) : f32[3,2]",
        "After an edit of your own: change the arguments that the message names. Otherwise: " + _REPORT,
    ),
    "TM3016": Explanation(
        "a pass left a constant that is not of its declared type",
        "The verifier found it: the dtype or shape of the array is not the declared one.",
        "a float64 array, declared f32",
        _REPORT,
    ),
    "TM3017": Explanation(
        "a pass left invalid quantization parameters",
        "The verifier found it: scales are positive and finite, zero points lie within the integer "
        "range, and there is one of each per tensor or one per channel.",
        "scale=[0.0]",
        _REPORT,
    ),
    "TM3018": Explanation(
        "a pass left an expression without provenance",
        "The verifier found it: each expression has a source location in the model, or the name of "
        "the pass that created it.",
        "an expression without source and made_by",
        _REPORT,
    ),
    "TM3019": Explanation(
        "a pass left a tensor in a layout that its user does not support",
        "Checked after layouts have been assigned: spatial ops work channels-last, elementwise ops "
        "need operands of one layout.",
        "a pooling op whose operand is in the layout of the source",
        _REPORT,
    ),
    "TM3020": Explanation(
        "a search did not find exactly one element",
        "as_unique() is for a search that finds one expression or node; this one found none or several.",
        'graph.get_function_by_type("nn.relu").as_unique(), in a model with two',
        "Search for an id, which print(graph) shows, filter further, or take as_list().",
    ),
}

_VERIFICATION = {
    "TM4001": Explanation(
        "the outputs of a written file differ from those of its source",
        "The file ran, and an output differs from the reference by more than the tolerance for its "
        "dtype. A conversion that ends with this error leaves no file.",
        "tmconvert verify model.tm other.onnx",
        "Check that the two files belong together, and that the options are those of the conversion. "
        "After a conversion the help of the message names known causes: kernels whose results differ "
        "on this processor, outputs that consist of rounding errors only, equal values whose order is "
        "not defined. Integer kernels of ONNX Runtime for uint8 and int8 saturate on x86 processors "
        "without VNNI (AMD Zen 1 to 3, Intel before Ice Lake), where --weight-type uint8 and "
        "--reduce-range are exact. If no cause is named, please report it. --no-verify writes the "
        "file anyway.",
    ),
    "TM4002": Explanation(
        "a runtime refuses a written file",
        "The runtime cannot load or run the file with these inputs; or its process crashed, or did "
        "not finish within ten minutes plus one second for each 256 KiB of the file and its inputs.",
        "tmconvert verify small.tm large.onnx: the inputs have other shapes",
        "Check that the two files belong together. ONNX Runtime has few operators for float64: give it the "
        "model in float32, or --no-verify for another runtime. TMCONVERT_RUNTIME_SECONDS=N in the "
        "environment allows N seconds instead. Otherwise please report it with the message.",
    ),
    "TM4003": Explanation(
        "no runtime for the file is installed",
        "ONNX files run in ONNX Runtime and TFLite files in LiteRT. Caffe nets need no package.",
        "tmconvert verify model.tm model.onnx, without onnxruntime",
        "Install the package that the message names, or all with: pip install 'tmconvert[runtimes]'",
    ),
    "TM4004": Explanation(
        "the installed runtime is too old for a written file",
        "The file uses a version of the format that is newer than the installed runtime. A conversion "
        "writes the file and reports that it was not verified.",
        "tmconvert verify model.tm model.onnx, with an opset newer than the installed ONNX Runtime",
        "Update the runtime, or choose an older --opset.",
    ),
    "TM4005": Explanation(
        "there is no reference to compare a file with",
        "The model has an op of your own library, which tmconvert cannot compute, and no recorded "
        "example outputs for these inputs.",
        "tmconvert verify model.tm model.onnx --inputs other.npz --plugin my_ops.py",
        "Pass a reference= to register_symbolic: a function that computes the op on NumPy arrays.",
    ),
}

_WRITING = {
    "TM5001": Explanation(
        "an output cannot be written",
        "The folder does not exist or is not writable, the disk is full, or the path is a folder.",
        "tmconvert onnx model.tm /no/such/folder/out.onnx",
        "The message names the cause. Nothing was written; an existing file is unchanged.",
    ),
    "TM5002": Explanation(
        "the model is larger than the format allows",
        "A protobuf message, such as a caffemodel, cannot be larger than 2 GiB.",
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
        "a model has a value that a container cannot store",
        "Attributes and constants may be numbers, text, tensors, modules, and lists and dicts of "
        "these. The message names the attribute and its type.",
        "a module with an open file as an attribute",
        "Remove the attribute, or convert from the original file instead.",
    ),
    "TM5005": Explanation(
        "a model cannot be written for MegEngine",
        "A file of MegEngine holds modules, functions and tensors of MegEngine only. The model was not "
        "traced by MegEngine, or an edit inserted a call or a tensor that MegEngine does not have. The "
        "message names it.",
        'tmconvert.trace(net, x).save("net.tm", format="megengine")',
        "Express the inserted part with functions of MegEngine, or save the model as a container, without "
        "a format.",
    ),
}

_DEFECTS = {
    "TM9000": Explanation(
        "an unexpected error",
        "tmconvert raised an exception that is not one of its documented errors.",
        "TypeError: 'NoneType' object is not subscriptable",
        _REPORT,
    ),
    "TM9001": Explanation(
        "a writer received a graph that it cannot write",
        "The lowering produced a constant of the wrong type, a duplicate name, or a value that no "
        "operator computes.",
        "constant 'w' is declared float32[3] and holds float64[3]",
        _REPORT,
    ),
    "TM9002": Explanation(
        "a written ONNX model is not valid",
        "ONNX's own checker rejects the file. It was removed again.",
        "a node without an input that its operator requires",
        _REPORT,
    ),
    "TM9004": Explanation(
        "a symbolic or decomposition failed",
        "It raised an exception, or its results differ from the op's in number, shape or dtype.",
        "relu_onnx6 failed: missing argument",
        "If the symbolic is your own, correct it. Otherwise: " + _REPORT,
    ),
    "TM9005": Explanation(
        "a part of tmconvert does not support symbolic sizes",
        "It used a dimension that --dynamic makes symbolic as if it were an int, and failed.",
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
    **TRANSFORM,
    **ONNX,
    **TFLITE,
    **CAFFE,
    **TORCH,
    **QUANTIZATION,
}
EXPLANATIONS: dict[str, Explanation] = dict(sorted(_ALL.items()))
