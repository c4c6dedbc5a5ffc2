"""Functions with which the standard defines operators.

Some of them depend on the types of a node's inputs. These are inferred once, from the graph without the data
of its tensors, when the first such operator is read.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from tmconvert.formats.onnx.faults import damaged, unknown_part

LARGEST_KNOWN = 1024  # bytes of a tensor whose values may decide shapes


class StandardFunctions:
    """Looks up the functions of the standard for the nodes of one model."""

    def __init__(self, path: str, model: Any) -> None:
        self.path = path
        self.model = model
        self.versions = {each.domain: each.version for each in model.opset_import}

    def of(self, node: Any, opset: int) -> Any:
        """Returns the function of a node's operator at an opset of ai.onnx; None where it has none.

        Raises LoadError TM1033 where the types of the inputs are not known, and TM1031 for a node that the
        standard does not allow.
        """
        import onnx

        domain = "" if node.domain == "ai.onnx" else node.domain
        version = self.versions.get(domain, 1) if domain else opset
        try:
            schema: Any = onnx.defs.get_schema(node.op_type, version, domain)
        except onnx.defs.SchemaError:
            return None
        if schema.has_function:
            return schema.function_body
        return self._typed(node, schema, opset) if schema.has_context_dependent_function else None

    def default(self, operator: str, attribute: str) -> Any:
        """Returns the value that an operator, such as ``Conv`` or ``com.microsoft::Gelu``, takes for an
        attribute that a node does not have; None where the standard states none.
        """
        import onnx

        domain, _, name = operator.rpartition("::")
        try:
            schema = onnx.defs.get_schema(name, self.versions.get(domain, 1), domain)
        except onnx.defs.SchemaError:
            return None
        known = schema.attributes.get(attribute)
        return known.default_value if known is not None and known.default_value.type else None

    def _typed(self, node: Any, schema: Any, opset: int) -> Any:
        import onnx

        place = node.name or f"of {', '.join(node.output)}"
        types = []
        for name in node.input:
            if name and name not in self.types:
                what = (
                    f"{node.op_type} is defined by the types of inputs, and that of {name!r:.80} is unknown"
                )
                raise unknown_part(self.path, what, "run onnx.shape_inference on the model first", place)
            types.append(self.types[name] if name else onnx.TypeProto().SerializeToString())
        try:
            body = schema.get_context_dependent_function(node.SerializeToString(), types)
        # the builders of onnx raise this for attributes and types that they do not expect
        except (RuntimeError, ValueError, onnx.defs.SchemaError) as error:
            raise damaged(self.path, f"{node.op_type}: {error}"[:300], place) from error
        function = onnx.FunctionProto()
        function.ParseFromString(body)
        if not any(each.domain in ("", "ai.onnx") for each in function.opset_import):
            function.opset_import.append(onnx.helper.make_opsetid("", opset))
        return function if function.node else None

    @cached_property
    def types(self) -> dict[str, bytes]:
        """The inferred types of the values of the graph as serialized TypeProto, by name."""
        import onnx

        try:
            inferred = onnx.shape_inference.infer_shapes(self._without_data())
        except (RuntimeError, ValueError, onnx.shape_inference.InferenceError):
            inferred = self._without_data()
        graph = inferred.graph
        found = {each.name: each.type for each in (*graph.input, *graph.value_info, *graph.output)}
        return {name: type_.SerializeToString() for name, type_ in found.items() if type_.WhichOneof("value")}

    def _without_data(self) -> Any:
        """Returns the model with large tensors as inputs."""
        import onnx

        made, graph = onnx.ModelProto(), self.model.graph
        made.ir_version = self.model.ir_version
        made.opset_import.extend(self.model.opset_import)
        made.functions.extend(self.model.functions)
        made.graph.name = "types"
        for field in ("node", "input", "output", "value_info"):
            getattr(made.graph, field).extend(getattr(graph, field))
        declared = {each.name for each in graph.input}
        for tensor in graph.initializer:
            if tensor.ByteSize() <= LARGEST_KNOWN and tensor.data_location != onnx.TensorProto.EXTERNAL:
                made.graph.initializer.append(tensor)
            elif tensor.name not in declared:
                value = onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
                made.graph.input.append(value)
        known = {each.name for each in made.graph.input}
        for tensor in made.graph.initializer:
            if tensor.name not in known:
                value = onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
                made.graph.value_info.append(value)
        return made
