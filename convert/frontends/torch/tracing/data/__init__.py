"""Python code that reads the data of tensors."""
