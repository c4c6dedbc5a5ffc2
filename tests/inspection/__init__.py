"""Tests of what looks at models and written files."""
