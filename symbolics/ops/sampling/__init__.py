"""Ops that sample images at positions or in boxes, and random numbers."""
