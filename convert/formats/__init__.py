"""The only readers of files: bytes become records and arrays, or the other way; no graph, no runtime."""
