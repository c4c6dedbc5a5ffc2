"""Output files: atomic, streamed, deterministic."""
