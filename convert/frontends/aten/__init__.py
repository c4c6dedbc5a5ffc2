"""Models whose calls are ops of the catalogue, such as calibrated models."""
