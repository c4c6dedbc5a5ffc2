"""Caffe: dialects as data, definitions of layers, builder, writer, reader and lint."""
