"""Explanations of the error codes of running and transforming models."""

from __future__ import annotations

from tmconvert.errors.explanation import Explanation

TRANSFORM = {
    "TM6050": Explanation(
        "the model has no such value",
        "A node, attribute or submodule is named that the model does not have.",
        "tmconvert run model.tm -i x.npz -o y.npz --watch layer9_out",
        "`tmconvert inspect MODEL --graph` shows the names; those of nodes in submodules follow the path of "
        "the submodule: layer1.0.relu_out.",
    ),
    "TM6051": Explanation(
        "unknown pass, or one that cannot be registered or run",
        "No pass has this name, another one has it already, or it must come after a pass that the conversion "
        "does not run.",
        'tmconvert.optimize(tm, ["FuseConvBN"])',
        "The message names the most similar pass; `tmconvert optimize --help` lists all.",
    ),
    "TM6052": Explanation(
        "a pass, pattern or decomposition of the user failed",
        "Its code raised an exception, or returned something else than it must.",
        "@tmconvert.register_pass('Mine') on a function that raises",
        "Correct the function at the line that the message names.",
    ),
    "TM6053": Explanation(
        "a pass of the user left a graph that is not valid",
        "The verifier found it after the pass: a value without a producer, a type that does not fit, ...",
        "a pass that sets the shape of a result",
        "The message names the pass and the expression; insert calls by an emitter, which infers the types.",
    ),
    "TM6054": Explanation(
        "a pattern or replacement that cannot be used",
        "A pattern computes each of its results, from connected calls; a replacement has as many inputs and "
        "results, of the same types.",
        "tmconvert.replace_pattern(tm, lambda g, x: x, lambda g, x: x)",
        "The message names the mismatch; docs/surgery/patterns-and-passes.md has examples.",
    ),
    "TM6055": Explanation(
        "a model cannot be split so",
        "Two parts would need each other's results.",
        "split_module(tm, by) where by gives 0, 1, 0 for three calls in a row",
        "Put what is between two calls of a part into the same part.",
    ),
    "TM6060": Explanation(
        "a node is used as a tensor outside of an insertion",
        "Operators, methods and functions of torch on nodes record calls, which is possible only inside of "
        "`with graph.insert_exprs()`.",
        "y = x * 2, for a node x, at the top of a script",
        "Put the line into `with graph.insert_exprs() as g:`, or use graph.call_function.",
    ),
    "TM6061": Explanation(
        "a part of a module cannot be set",
        "The name belongs to a part of another kind, is not the name of an attribute, or the value cannot be "
        "stored in its place.",
        'tm.conv1.weight = "zeros", or tm.add_module("weight", other)',
        "Delete the other part first, choose another name, or convert the value.",
    ),
    "TM6062": Explanation(
        "a state dict does not fit the model",
        "Tensors are missing, unexpected, or of another shape; nothing was changed.",
        "tm.load_state_dict(state) of another model",
        "Compare with tm.state_dict(). With strict=False missing and unexpected keys are passed over.",
    ),
    "TM6063": Explanation(
        "an input cannot have this type",
        "The shape is not a sequence of sizes, or the element type is not that of a tensor.",
        'graph.add_input_node((1, -3), "float32")',
        "Pass a shape of integers from 0 on, and a dtype such as float32; reset_inputs takes tensors.",
    ),
    "TM6064": Explanation(
        "unknown kind of node",
        "graph.create_node takes the kinds of torch.fx.",
        'graph.create_node("call", torch.relu, (x,))',
        "Use call_function, call_method, call_module, get_attr, placeholder or output.",
    ),
    "TM6065": Explanation(
        "quantization parameters of a node that conversion would not use",
        "In a graph in the words of its source, fake quantization calls decide the parameters of tensors.",
        "tm.graph.outputs[0].qparams = other, for a model that was trained with fake quantization",
        "Set node.qparams in the graph of tmconvert.normalize(model), or change the scale of the fake "
        "quantization.",
    ),
}
