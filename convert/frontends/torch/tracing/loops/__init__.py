"""Rolls loops: copies of a loop's body on a tape become one call with a subgraph."""
