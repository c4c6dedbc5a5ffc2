"""Layers: convolutions, pooling, normalization, recurrent layers, attention."""
