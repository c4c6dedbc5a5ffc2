"""What the frontends share: adapter tables, arguments, indexing."""
