"""Caffe nets as files: messages, dialects, layer types, reading."""
