"""Caffe as such: its dialects as data, what each layer computes, and what a net must keep to."""
