"""Ops over axes: sums, extremes, order statistics, sorting, cumulative ops, distances."""
