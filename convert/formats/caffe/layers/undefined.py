"""Layers that readers know and for which no definition of what they compute is implemented."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tmconvert.formats.caffe.layers.layer import Layer, Shape


def _matrix_macs(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> int:
    return prod(outputs[0]) * inputs[0][-1]


LAYERS = {
    "Axpy": Layer(bottoms=(3, 3), is_of_fork=True, is_spatial=True),
    "BatchedMatMul": Layer(bottoms=(2, 2), parameters="batch_matmul_param", is_of_fork=True),
    "CReLU": Layer(parameters="crelu_param", is_of_fork=True),
    "ConvolutionDepthwise": Layer(parameters="convolution_param", is_of_fork=True, is_spatial=True),
    "Custom": Layer(parameters="custom_param", is_of_fork=True),
    "DepthwiseConvolution": Layer(parameters="convolution_param", is_of_fork=True, is_spatial=True),
    "DetectionOutput": Layer(bottoms=(3, 5), parameters="detection_output_param", is_of_fork=True),
    "DummyData": Layer(bottoms=(0, 0), tops=(1, None), parameters="dummy_data_param"),
    "Filter": Layer(),
    "LSTMUnit": Layer(bottoms=(3, 3), tops=(2, 2)),
    "MatMul": Layer(bottoms=(2, 2), is_of_fork=True, macs=_matrix_macs),
    "PSROIPooling": Layer(bottoms=(2, 2), parameters="psroi_pooling_param", is_of_fork=True),
    "PassThrough": Layer(parameters="pass_through_param", is_of_fork=True),
    "PriorBox": Layer(bottoms=(2, 2), parameters="prior_box_param", is_of_fork=True, is_spatial=True),
    "Proposal": Layer(parameters="proposal_param", is_of_fork=True),
    "Python": Layer(parameters="python_param"),
    "ROIAlign": Layer(bottoms=(2, 2), parameters="roi_align_param", is_of_fork=True),
    "ROIPooling": Layer(bottoms=(2, 2), parameters="roi_pooling_param", is_of_fork=True),
    "RReLU": Layer(parameters="rrelu_param", is_of_fork=True),
    "Reorg": Layer(parameters="reorg_param", is_of_fork=True),
    "Upsample": Layer(parameters="upsample_param", is_of_fork=True, is_spatial=True),
}
