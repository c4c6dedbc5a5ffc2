"""Python code of PyTorch for a graph: modules that train, and packages that need torch alone."""
