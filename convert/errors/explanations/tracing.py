"""What the error codes of tracing PyTorch models mean."""

from __future__ import annotations

from tmconvert.errors.explanation import Explanation

TORCH = {
    "TM1021": Explanation(
        "tracing needs PyTorch, which is not installed",
        "A model of PyTorch is traced: it runs once, and for that PyTorch must be there. What comes of it, a "
        ".tm file, is converted without PyTorch.",
        "tmconvert trace net:make -o net.tm --input 'float32[1,3,224,224]'",
        "pip install torch (the CPU build is enough: pytorch.org says how to install it), in "
        "the Python that runs tmconvert; or trace where PyTorch is, and take the .tm file along.",
    ),
    "TM1022": Explanation(
        "PACKAGE.MODULE:FACTORY does not name a PyTorch module",
        "The module does not exist, has no such name, or what is there gives no torch.nn.Module when it is "
        "called without arguments. Names are looked up in the current folder first.",
        "tmconvert trace net.py:make -o net.tm",
        "Write net:make for a function make() in net.py that returns the module, or (module, inputs).",
    ),
    "TM1023": Explanation(
        "the user's code fails while the model is made",
        "Importing the module, or calling the factory, raised an exception, which the message quotes with "
        "the line.",
        'def make(): return Net(torch.load("no_such.pt"))',
        "Correct that line; `python -c 'import net; net.make()'` shows the whole traceback.",
    ),
    "TM1024": Explanation(
        "a checkpoint is no model",
        "torch.save writes weights, by the names of parameters. What is computed with them is Python code "
        "that is not in the file (and a whole module saved so is a pickle, which runs code when it is read).",
        "tmconvert onnx weights.pt out.onnx",
        "Write a function that makes the module, loads the weights with load_state_dict, calls eval() and "
        "returns it; then tmconvert onnx PACKAGE.MODULE:FUNCTION out.onnx --input ...",
    ),
    "TM1025": Explanation(
        "a TorchScript file runs code when it is loaded",
        "A file of torch.jit.save is a program: torch.jit.load runs parts of it, and to trace the model the "
        "rest runs, too. tmconvert does not do that unasked.",
        "tmconvert onnx scripted.pt out.onnx --input 'float32[1,3,8,8]'",
        "If you trust the origin of the file, add --allow-code (in Python allow_code=True).",
    ),
    "TM1026": Explanation(
        "a .pt2 file cannot be used",
        "The file of torch.export.save is damaged, follows a version of the format that this release does "
        "not know, or has parts that only code from the file could bring back: pickled objects, compiled "
        "libraries, calls of functions beyond PyTorch's operators. tmconvert runs no such code.",
        "a .pt2 file made by torch._inductor.aoti_compile_and_package",
        "Save the program again with torch.export.save, without custom objects; or give the module itself as "
        "PACKAGE.MODULE:FACTORY.",
    ),
    "TM2011": Explanation(
        "a PyTorch module looks into a tensor that depends on its input",
        "A model is traced: it runs once, and its calls are written down. Where Python branches on a "
        "tensor, or makes a number of it (if x.sum() > 0, int(n), x.item(), for i in range(n)), the way that "
        "it goes would be that of the example inputs for ever.",
        "def forward(self, x): return x if x.sum() > 0 else -x",
        "Compute with tensors: torch.where, masks, torch.cond. Where the way is the same for all inputs that "
        "matter, such as a check of the input, trace with --freeze-control-flow (freeze_control_flow=True): "
        "each decision is then listed in the report.",
    ),
    "TM2012": Explanation(
        "a PyTorch module writes through a view that cannot be followed",
        "Files of models have no writes, so they become calls that give a new tensor. That takes knowing "
        "which elements the view has, and for this one it is not known.",
        "x.narrow(0, n, 2).zero_(), where n is a size that stays open",
        "Compute a new tensor at that line (torch.cat, torch.where, index_put) in the place of writing.",
    ),
    "TM2013": Explanation(
        "a tensor of a PyTorch module is not dense",
        "Parameters, buffers and constants must be ordinary tensors, neither sparse nor of torch.ao's "
        "quantized types.",
        "self.mask = mask.to_sparse()",
        "Make it dense with to_dense() or dequantize() before the model is traced.",
    ),
    "TM2014": Explanation(
        "a PyTorch module fails with its example inputs",
        "forward raised an exception, also without tmconvert, which the message quotes with the line. Mostly "
        "an input has another shape or dtype than the model takes, or goes to another parameter.",
        "tmconvert trace net:make -o net.tm --input 'float32[3,224,224]'",
        "Give --input as the model takes them: in the order of the parameters of forward, or by name as "
        "--input mask='bool[1,16]'; whole numbers below a limit as 'int64[1,16]<1000'.",
    ),
    "TM2015": Explanation(
        "a PyTorch model takes or returns tensors in an object of an unknown class",
        "Inputs and outputs may be nested in tuples, lists, dicts, named tuples, dataclasses, and in classes "
        "that are registered with torch's pytree. Tensors in another object would be constants of the "
        "example as inputs, and would be missing as outputs. Caches of transformers need no registration.",
        "def forward(self, x): return torch.distributions.Normal(self.mean(x), 1.0)",
        "Take and return the tensors themselves, or a dict or dataclass of them; or register the class with "
        "torch.utils._pytree.register_pytree_node(Class, flatten, unflatten) before the model is traced.",
    ),
    "TM2016": Explanation(
        "a gradient inside of a PyTorch model cannot be recorded",
        "forward takes a gradient of something that depends on its inputs. torch.autograd.grad and "
        "Tensor.backward are recorded, operator by operator; torch.func.grad, jvp and the like are not, and "
        "neither are backward passes that compute with tensors that no recorded operator made.",
        "def forward(self, x): return torch.func.grad(self.energy)(x)",
        "Use torch.autograd.grad under torch.enable_grad(), write the derivative in closed form, or leave "
        "the gradient to the program around the model.",
    ),
    "TM6015": Explanation(
        "an example input cannot be understood",
        "--input takes a dtype with a shape, for random data; a file; or a number. A name before = makes it "
        "a keyword argument of forward.",
        "tmconvert onnx net:make net.onnx --input 1x3x224x224",
        "Write 'float32[1,3,224,224]', 'int64[1,16]<1000' (whole numbers below 1000), mask='bool[1,16]', "
        "x.npy, inputs.npz or scale=2, in quotes: brackets and < mean something to a shell.",
    ),
    "TM6016": Explanation(
        "options of tracing for a model that is not traced",
        "--input, --freeze-control-flow and --allow-code are about running a PyTorch model. A .tm file has "
        "its graph already.",
        "tmconvert inspect net.tm --input 'float32[1,3,8,8]'",
        "Leave the options out.",
    ),
}
