"""Reads Caffe nets."""
