"""Writing files: atomically, streamed, the same bytes every time."""
