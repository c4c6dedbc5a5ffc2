"""Folders that a program opens: model files, configuration and tokenizer, one kind of package a file."""
