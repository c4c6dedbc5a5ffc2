"""Reads TFLite models."""
