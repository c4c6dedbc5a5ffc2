"""Tests of reading Caffe nets."""
