"""Explanations of the error codes of tracing PyTorch models."""

from __future__ import annotations

from tmconvert.errors.explanation import Explanation

TORCH = {
    "TM1021": Explanation(
        "tracing needs PyTorch, which is not installed",
        "A PyTorch model is traced: it runs once, which needs PyTorch. The result, a .tm file, is "
        "converted without PyTorch.",
        "tmconvert trace net:make -o net.tm --input 'float32[1,3,224,224]'",
        "pip install torch (the CPU build is enough: see pytorch.org for how to install it), in the "
        "Python that runs tmconvert; or trace on a machine that has PyTorch, and copy the .tm file.",
    ),
    "TM1022": Explanation(
        "PACKAGE.MODULE:FACTORY does not name a PyTorch module",
        "The module does not exist, has no such name, or the object does not return a torch.nn.Module "
        "when it is called without arguments. Names are looked up in the current folder first.",
        "tmconvert trace net.py:make -o net.tm",
        "Write net:make for a function make() in net.py that returns the module, or (module, inputs).",
    ),
    "TM1023": Explanation(
        "the user's code fails while it creates the model",
        "Importing the module, or calling the factory, raised an exception, which the message quotes "
        "with the line.",
        'def make(): return Net(torch.load("no_such.pt"))',
        "Correct that line; `python -c 'import net; net.make()'` shows the whole traceback. \"operator "
        'torchvision::nms does not exist" means that torch and torchvision are builds of different '
        "indexes: install both from the same one, see docs/install.md.",
    ),
    "TM1024": Explanation(
        "a checkpoint is not a model",
        "torch.save writes weights by parameter name. The computation is Python code that is not in "
        "the file; and a whole module saved this way is a pickle, which runs code when it is loaded.",
        "tmconvert onnx weights.pt out.onnx",
        "Write a function that creates the module, loads the weights with load_state_dict, calls "
        "eval() and returns it; then run tmconvert onnx PACKAGE.MODULE:FUNCTION out.onnx --input ...",
    ),
    "TM1025": Explanation(
        "a TorchScript file runs code when it is loaded",
        "A file of torch.jit.save is a program: torch.jit.load runs parts of it, and tracing the "
        "model runs the rest. tmconvert does this only with your permission.",
        "tmconvert onnx scripted.pt out.onnx --input 'float32[1,3,8,8]'",
        "If you trust the origin of the file, add --allow-code (in Python allow_code=True).",
    ),
    "TM1028": Explanation(
        "a folder of transformers cannot be used",
        "Its config.json is not one of transformers, transformers is not installed, older than 4.56 or does "
        "not know the model, its weights are not in safetensors, or some of them are missing or have other "
        "shapes. Nor may the configuration name code, files, downloads or native kernels: transformers gets "
        "only the configuration and the weights of the folder, and is stopped when it does anything else.",
        "tmconvert onnx bert-folder bert.onnx, where the weights are pytorch_model.bin",
        "Save the model again with model.save_pretrained(folder), by the class that architectures names; or "
        "write a function that returns the module, and name it as PACKAGE.MODULE:FUNCTION.",
    ),
    "TM1026": Explanation(
        "a .pt2 file cannot be used",
        "The file of torch.export.save is damaged, uses a version of the format that this release "
        "does not know, or has parts that only code from the file could restore: pickled objects, "
        "compiled libraries, calls of functions other than PyTorch's operators. tmconvert does not "
        "run such code.",
        "a .pt2 file made by torch._inductor.aoti_compile_and_package",
        "Save the program again with torch.export.save, without custom objects; or pass the module "
        "itself as PACKAGE.MODULE:FACTORY.",
    ),
    "TM2011": Explanation(
        "a PyTorch module has control flow or a Python number that depends on its input",
        "A model is traced: it runs once, and its calls are recorded. Where Python branches on a "
        "tensor, or converts one to a number (if x.sum() > 0, int(n), x.item(), for i in range(n)), "
        "the recorded branch would be that of the example inputs for all inputs. So would be a tensor that "
        "is computed where tracing cannot follow: in another thread, in a subclass of Tensor, with set_(), "
        "torch.utils.swap_tensors or pickle.",
        "def forward(self, x): return x if x.sum() > 0 else -x",
        "Compute with tensors: torch.where, masks, torch.cond. Where the branch is the same for all "
        "relevant inputs, such as a check of the input, trace with --freeze-control-flow "
        "(freeze_control_flow=True): the report then lists each decision.",
    ),
    "TM2012": Explanation(
        "a PyTorch module writes through a view that cannot be functionalized",
        "Model files have no in-place writes, so tmconvert replaces them by calls that return a new "
        "tensor. That requires the elements that the view covers, which are unknown for this view.",
        "x.narrow(0, n, 2).zero_(), where n is a dynamic size",
        "Compute a new tensor at that line (torch.cat, torch.where, index_put) instead of writing in place.",
    ),
    "TM2013": Explanation(
        "a tensor of a PyTorch module is not dense",
        "Parameters, buffers and constants must be strided tensors, neither sparse nor of torch.ao's "
        "quantized types.",
        "self.mask = mask.to_sparse()",
        "Convert it with to_dense() or dequantize() before the model is traced.",
    ),
    "TM2014": Explanation(
        "a PyTorch module fails with its example inputs",
        "forward raised an exception, independently of tmconvert; the message quotes it with the "
        "line. Mostly an input has another shape or dtype than the model expects, or goes to another "
        "parameter.",
        "tmconvert trace net:make -o net.tm --input 'float32[3,224,224]'",
        "Pass --input in the order of the parameters of forward, or by name as --input "
        "mask='bool[1,16]'; integers below a limit as 'int64[1,16]<1000'.",
    ),
    "TM2015": Explanation(
        "a PyTorch model takes or returns tensors in a function or in an object of an unknown class",
        "Inputs and outputs may be nested in tuples, lists, dicts, named tuples, dataclasses, and in "
        "classes that are registered with torch's pytree. Tensors in other objects, and in functions "
        "(closures, defaults, functools.partial), would become "
        "constants as inputs, and would be missing as outputs. Caches of transformers need no "
        "registration.",
        "def forward(self, x): return torch.distributions.Normal(self.mean(x), 1.0)",
        "Use the tensors themselves, or a dict or dataclass of them, as arguments and results; or "
        "register the class with tmconvert.register_supported_type(Class, flatten, unflatten) "
        "before the model is traced.",
    ),
    "TM2016": Explanation(
        "a gradient inside a PyTorch model cannot be recorded",
        "forward computes a gradient of a value that depends on its inputs. torch.autograd.grad and "
        "Tensor.backward and the transforms of torch.func are recorded, operator by operator. "
        "torch.autograd.forward_ad.dual_level is not, and neither are backward passes that use tensors "
        "that no recorded operator computed.",
        "def forward(self, x): return forward_ad.unpack_dual(self.net(forward_ad.make_dual(x, x))).tangent",
        "Use torch.autograd.grad under torch.enable_grad(), or torch.func.grad, write the derivative in "
        "closed form, or compute the gradient outside of the model.",
    ),
    "TM6015": Explanation(
        "an example input cannot be parsed",
        "--input takes a dtype with a shape, for random data; a file; or a number. A name before = "
        "passes it as a keyword argument of forward.",
        "tmconvert onnx net:make net.onnx --input 1x3x224x224",
        "Write 'float32[1,3,224,224]', 'int64[1,16]<1000' (integers below 1000), mask='bool[1,16]', "
        "x.npy, inputs.npz or scale=2, in quotes: a shell interprets brackets and <.",
    ),
    "TM6016": Explanation(
        "tracing options for a model that is not traced",
        "--input, --freeze-control-flow and --allow-code apply to PyTorch models, which tmconvert "
        "runs. A .tm file already has a graph.",
        "tmconvert inspect net.tm --input 'float32[1,3,8,8]'",
        "Omit the options.",
    ),
}
