#!/bin/sh
# Converts a MegEngine model and an ONNX file of torch.onnx to ONNX, TFLite and Caffe, into out/, then reads real
# images with each file. Needs `tmconvert` and its runtimes on the PATH: pip install '.[runtimes]'
set -eu
here=$(dirname "$0")
mkdir -p out
for model in digits.tm digits_torch.onnx; do
    name=out/${model%.*}
    tmconvert onnx "$here/$model" "$name.onnx" --opset 15
    tmconvert tflite "$here/$model" "$name.tflite"
    tmconvert caffe "$here/$model" "$name.prototxt" $([ "$model" = digits.tm ] || echo --input-shape image=1,1,8,8)
done
caffe=$(python -c "import cv2" 2>/dev/null && echo out/digits.prototxt) || true # OpenCV runs Caffe files, where installed
python "$here/run_digits.py" out/digits.onnx out/digits.tflite $caffe
python "$here/run_digits.py" out/digits_torch.onnx out/digits_torch.tflite --logits "$here/digits_torch_logits.npy"
