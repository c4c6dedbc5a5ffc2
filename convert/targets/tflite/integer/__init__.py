"""TFLite: converts a lowered float graph to integers, by the source's QParams."""
