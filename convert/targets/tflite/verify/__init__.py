"""Verification of TFLite files in integers."""
