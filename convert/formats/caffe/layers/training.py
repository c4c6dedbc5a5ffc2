"""Layers that only training and testing have."""

from __future__ import annotations

from tmconvert.formats.caffe.layers.layer import Layer

LAYERS = {
    "Accuracy": Layer(parameters="accuracy_param", trains=True),
    "ContrastiveLoss": Layer(parameters="contrastive_loss_param", trains=True),
    "Data": Layer(parameters="data_param", trains=True),
    "EuclideanLoss": Layer(trains=True),
    "HDF5Data": Layer(parameters="hdf5_data_param", trains=True),
    "HDF5Output": Layer(parameters="hdf5_output_param", trains=True),
    "HingeLoss": Layer(parameters="hinge_loss_param", trains=True),
    "ImageData": Layer(parameters="image_data_param", trains=True),
    "InfogainLoss": Layer(parameters="infogain_loss_param", trains=True),
    "MemoryData": Layer(parameters="memory_data_param", trains=True),
    "MultinomialLogisticLoss": Layer(trains=True),
    "SigmoidCrossEntropyLoss": Layer(trains=True),
    "SoftmaxWithLoss": Layer(parameters="softmax_param", trains=True),
    "WindowData": Layer(parameters="window_data_param", trains=True),
}
