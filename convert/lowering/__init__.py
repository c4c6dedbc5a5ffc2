"""From the graph of aten ops to operators of a target."""
