"""Edits of graphs: each is checked before it changes the graph, or is undone when it fails."""
