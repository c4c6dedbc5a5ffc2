"""TFLite files: element types, enums and options tables."""
