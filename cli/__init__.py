"""The command line: click commands, one a file, and rich rendering; nothing else."""
