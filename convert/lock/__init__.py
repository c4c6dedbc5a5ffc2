"""Locks: a record of what made a file, from which it is made again."""
