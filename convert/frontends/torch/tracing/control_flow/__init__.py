"""Python's own control flow: branches and loops that several runs of a module show."""
