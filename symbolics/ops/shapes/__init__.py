"""Ops that move, copy or pad elements at static positions, and tensors made of sizes."""
