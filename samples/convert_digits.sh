#!/bin/sh
# Converts the digits model to ONNX, TFLite and Caffe into out/, then runs all three on real images.
# Needs `tmconvert` and its runtimes on the PATH: pip install '.[runtimes]'
set -eu
here=$(dirname "$0")
mkdir -p out
tmconvert onnx "$here/digits.tm" out/digits.onnx
tmconvert tflite "$here/digits.tm" out/digits.tflite
tmconvert caffe "$here/digits.tm" out/digits.prototxt
python "$here/run_digits.py" out/digits.onnx out/digits.tflite out/digits.prototxt
