"""Adapters of layers, images and detection."""
