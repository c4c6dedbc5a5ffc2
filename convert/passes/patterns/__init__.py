"""Patterns and predicates that several passes share."""
