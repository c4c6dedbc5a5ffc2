"""Passes for TFLite alone: layout, transposes, scales, and rewritings of the lowered graph."""
