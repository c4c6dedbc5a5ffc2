"""Step models: offline models over time that take chunks and states."""
