"""The container: the file of ``tmconvert save``; docs/container.md describes it."""
