"""Adapters of functions that reshape, slice, pad and create tensors."""
