#!/bin/sh
# Converts a MegEngine model to ONNX, TFLite and Caffe and a PyTorch model to ONNX, into out/, then runs all four
# on real images. Needs `tmconvert`, its runtimes and PyTorch on the PATH: pip install '.[torch,runtimes]'
set -eu
here=$(dirname "$0")
mkdir -p out
tmconvert onnx "$here/digits.tm" out/digits.onnx
tmconvert tflite "$here/digits.tm" out/digits.tflite
tmconvert caffe "$here/digits.tm" out/digits.prototxt
PYTHONPATH="$here" tmconvert onnx digits_torch:make out/digits_torch.onnx --dynamic image:0=batch
python "$here/run_digits.py" out/digits.onnx out/digits.tflite out/digits.prototxt
python "$here/run_digits.py" out/digits_torch.onnx --logits "$here/digits_torch_logits.npy"
