"""Tests of README.md, CONTRIBUTING.md, ARCHITECTURE.md and the pages in docs/."""
