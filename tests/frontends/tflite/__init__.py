"""Tests of reading TFLite models."""
