"""Special functions of mathematics, and Fourier transforms."""
