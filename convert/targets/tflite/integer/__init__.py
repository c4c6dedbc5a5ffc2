"""TFLite: a lowered float graph in integers, by the grids that the source gives its tensors."""
