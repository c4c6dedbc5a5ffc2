"""TFLite: operators, layout, integer kernels, writer, reader and verification."""
