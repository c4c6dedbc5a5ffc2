"""Layers that readers know and for which no definition of what they compute is implemented."""

from __future__ import annotations

from tmconvert.formats.caffe.layers.layer import Layer

LAYERS = {
    "BatchedMatMul": Layer(parameters="batch_matmul_param", is_of_fork=True),
    "CReLU": Layer(parameters="crelu_param", is_of_fork=True),
    "Custom": Layer(parameters="custom_param", is_of_fork=True),
    "DetectionOutput": Layer(parameters="detection_output_param", is_of_fork=True),
    "DummyData": Layer(parameters="dummy_data_param"),
    "Filter": Layer(),
    "LSTMUnit": Layer(),
    "MatMul": Layer(is_of_fork=True),
    "PSROIPooling": Layer(parameters="psroi_pooling_param", is_of_fork=True),
    "PassThrough": Layer(parameters="pass_through_param", is_of_fork=True),
    "PriorBox": Layer(parameters="prior_box_param", is_of_fork=True),
    "Proposal": Layer(parameters="proposal_param", is_of_fork=True),
    "Python": Layer(parameters="python_param"),
    "ROIAlign": Layer(parameters="roi_align_param", is_of_fork=True),
    "ROIPooling": Layer(parameters="roi_pooling_param", is_of_fork=True),
    "RReLU": Layer(parameters="rrelu_param", is_of_fork=True),
    "Reorg": Layer(parameters="reorg_param", is_of_fork=True),
    "Upsample": Layer(parameters="upsample_param", is_of_fork=True),
}
