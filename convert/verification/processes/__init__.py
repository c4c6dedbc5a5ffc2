"""Runs runtimes that may abort in processes of their own."""
