"""The commands, one a file; each has a click command called ``command``."""
