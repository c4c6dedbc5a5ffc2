"""Adapters of the operators of com.microsoft."""
