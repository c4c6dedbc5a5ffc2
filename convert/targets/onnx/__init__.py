"""ONNX: builder, element types, integer encodings, writer, reader and runtime."""
