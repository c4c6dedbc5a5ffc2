"""Edits of graphs: each checks what it does before it is done, or undoes it."""
