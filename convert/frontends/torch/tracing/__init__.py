"""The tracer: runs a module and writes down its calls. The only part of tmconvert that imports torch."""
