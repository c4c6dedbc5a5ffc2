"""Models whose calls are ops of the catalogue already, as calibration makes them."""
