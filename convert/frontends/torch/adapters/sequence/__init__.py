"""Adapters of recurrent layers, scans and control flow."""
