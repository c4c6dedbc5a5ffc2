"""Adapters of linear algebra and Fourier transforms."""
