"""The search for layers that have to be in int16 or float in an integer file."""
