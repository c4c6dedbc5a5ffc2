"""Modules from factories, folders of transformers, torch.export and TorchScript."""
