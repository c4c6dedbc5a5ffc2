"""Writes the files of this folder; they were made by TensorFlow 2.21 (pip install tensorflow)."""

from pathlib import Path

import tensorflow as tf

FOLDER = Path(__file__).parent
I32 = tf.int32


def spec(*shape, dtype=tf.float32):
    return tf.TensorSpec(shape, dtype)


def of_function(function, *specs):
    module = tf.Module()
    module.f = tf.function(function, input_signature=specs)
    return tf.lite.TFLiteConverter.from_concrete_functions([module.f.get_concrete_function()], module)


def of_layers(*layers):
    x = made = tf.keras.Input((6, 4), batch_size=1)
    for layer in layers:
        made = layer(made)
    return tf.lite.TFLiteConverter.from_keras_model(tf.keras.Model(x, made))


def steps(x, state, combined):
    return tf.scan(combined, x, initializer=state)


tf.random.set_seed(0)
layers = tf.keras.layers
CONVERTERS = {
    "lstm_seq": lambda: of_layers(layers.LSTM(5, return_sequences=True)),
    # of tf_keras 2.21 (TF_USE_LEGACY_KERAS=1), which writes the operator of LSTMs
    "fused_lstm": lambda: of_layers(layers.LSTM(5)),
    "fused_lstm_clipped": lambda: of_layers(
        layers.LSTM(5, bias_initializer=tf.keras.initializers.Constant(4.0))
    ),
    "lstm_mask": lambda: of_layers(layers.Masking(0.0), layers.LSTM(5)),
    "gru": lambda: of_layers(layers.GRU(5)),
    "map_fn_i": lambda: of_function(
        lambda x: tf.map_fn(lambda i: x[i] * 2, tf.range(4), fn_output_signature=tf.float32), spec(4, 3)
    ),
    "scan2": lambda: of_function(
        lambda x: steps(x, (tf.zeros(3), tf.ones(3)), lambda a, r: (a[0] + r, a[1] * r)), spec(4, 3)
    ),
    "while_two": lambda: of_function(
        lambda x: tf.while_loop(lambda i, a, b: i < 3, lambda i, a, b: (i + 1, a + b, a * 0.5), [0, x, x]),
        spec(4, 3),
    ),
    "while_dyn": lambda: of_function(
        lambda x: tf.while_loop(
            lambda i, a: i < tf.shape(x)[0], lambda i, a: (i + 1, a * 0.9 + x[i]), [0, tf.zeros(3)]
        )[1],
        spec(None, 3),
    ),
    "nms": lambda: of_function(
        lambda b, s: tf.image.non_max_suppression(b, s, 5, 0.5, 0.1), spec(8, 4), spec(8)
    ),
    "conv3dt": lambda: of_function(
        lambda x: tf.nn.conv3d_transpose(
            x, tf.ones((2, 2, 2, 4, 3)), [1, 8, 8, 8, 4], [1, 2, 2, 2, 1], "SAME"
        ),
        spec(1, 4, 4, 4, 3),
    ),
    "dyn_index2": lambda: of_function(lambda x, n: x[1:3, n, ::2], spec(8, 3, 4), spec(dtype=I32)),
}


class Pair(tf.Module):
    """Two functions, which become two signatures of a file."""

    def __init__(self):
        self.weight = tf.Variable(tf.random.normal((3, 2)))

    @tf.function(input_signature=[tf.TensorSpec((1, 3), tf.float32, name="x")])
    def encode(self, x):
        return {"code": tf.matmul(x, self.weight)}

    @tf.function(input_signature=[tf.TensorSpec((1, 2), tf.float32, name="c")])
    def decode(self, c):
        return {"image": tf.matmul(c, self.weight, transpose_b=True), "again": c * 2}


def signatures():
    pair, folder = Pair(), "/tmp/pair"
    tf.saved_model.save(pair, folder, signatures={"encode": pair.encode, "decode": pair.decode})
    return tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=["encode", "decode"])


def dynamic_range():
    x = tf.keras.Input((6, 40), batch_size=1)
    made = layers.Dense(300)(layers.LSTM(32, return_sequences=True)(x))  # of tf_keras, too
    converter = tf.lite.TFLiteConverter.from_keras_model(tf.keras.Model(x, made))
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    return converter


CONVERTERS["signatures"] = signatures
CONVERTERS["dynamic_range"] = dynamic_range

if __name__ == "__main__":
    for name, make in CONVERTERS.items():
        (FOLDER / f"{name}.tflite").write_bytes(make().convert())
