"""Scripts that run the programs which open packages, each in a process of its own."""
