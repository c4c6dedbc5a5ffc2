"""The tracer: runs a module once and records its calls. The only part of tmconvert that imports torch."""
