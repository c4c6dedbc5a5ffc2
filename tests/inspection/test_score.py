"""``tmconvert.score``: scores of tasks, whose values are known or computed in another way."""

from __future__ import annotations

import json
import math
import wave
from pathlib import Path

import numpy as np
import onnx
import pytest

import tmconvert
from tests.cli.runner import run
from tests.frontends.onnx.models import of_nodes
from tmconvert.errors import UsageError
from tmconvert.inspection.metrics import log_likelihoods, spearman, word_errors

RNG = np.random.default_rng(5)
WORDS = ("<unk>", "the", "cat", "sat", "on", "a", "mat")


def saved(model: onnx.ModelProto, constants: dict[str, np.ndarray], path: Path) -> Path:
    for name, array in constants.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    onnx.save(model, path)
    return path


def classifier(weights: np.ndarray, path: Path) -> Path:
    node = onnx.helper.make_node("MatMul", ["x", "w"], ["y"])
    model = of_nodes([node], {"x": [1, len(weights)]}, ["y"])
    return saved(model, {"w": weights.astype(np.float32)}, path)


def of_text(table: np.ndarray, output: str, path: Path) -> Path:
    """A model that looks up a row of ``table`` for each token."""
    node = onnx.helper.make_node("Gather", ["table", "input_ids"], [output])
    model = of_nodes([node], {"input_ids": [1, "n"]}, [output])
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    return saved(model, {"table": table.astype(np.float32)}, path)


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    tokenizers = pytest.importorskip("tokenizers")
    words = tokenizers.models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="<unk>")
    made = tokenizers.Tokenizer(words)
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


@pytest.mark.parametrize("form", ["folders", "numbers", "csv"])
def test_top_1_is_the_share_of_right_classes(form: str, tmp_path: Path) -> None:
    samples, labels = RNG.standard_normal((12, 1, 8)).astype(np.float32), RNG.integers(0, 6, 12)
    weights = RNG.standard_normal((8, 6))
    data = tmp_path / "data"
    for at, (sample, label) in enumerate(zip(samples, labels, strict=True)):
        folder = data / {"folders": f"c{label}", "numbers": str(label), "csv": "all"}[form]
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / f"{at}.npy", sample)
    for label in range(6) if form == "folders" else ():  # a class without samples has an index, too
        (data / f"c{label}").mkdir(exist_ok=True)
        np.save(data / f"c{label}" / "more.npy", samples[0])
    if form == "csv":
        lines = [f"all/{at}.npy,{label}" for at, label in enumerate(labels)]
        data = data / "list.csv"
        data.write_text("\n".join(["file,class", *lines]))
    files = [classifier(weights, tmp_path / "a.onnx"), classifier(-weights, tmp_path / "b.onnx")]
    found = tmconvert.score(*files, data=data, task="top-1")
    if form == "folders":
        samples, labels = np.concatenate([samples, samples[:1].repeat(6, 0)]), [*labels, *range(6)]
    for each, sign in zip(found.files, (1, -1), strict=True):
        best = (sign * samples[:, 0] @ weights).argsort(1)[:, ::-1]
        assert each.value == pytest.approx(np.mean(best[:, 0] == labels))
        assert each.others["top-5"] == pytest.approx(np.mean((best[:, :5] == np.c_[labels]).any(1)))
        assert each.samples == len(labels)


@pytest.mark.parametrize("window", [4, 512])
def test_perplexity_is_that_of_the_probabilities(window: int, tokenizer: Path) -> None:
    table = RNG.standard_normal((7, 7))
    file = of_text(table, "logits", tokenizer / "model.onnx")
    text = "the cat sat on a mat the cat the dog"
    (tokenizer / "text.txt").write_text(text)
    tokens = [WORDS.index(word) if word in WORDS else 0 for word in text.split()]
    chances = np.exp(table) / np.exp(table).sum(1, keepdims=True)
    pairs = [at for at in range(1, len(tokens)) if at % window]
    loss = -np.mean([math.log(chances[tokens[at - 1], tokens[at]]) for at in pairs])
    (found,) = tmconvert.score(file, data=tokenizer / "text.txt", task="perplexity", window=window).files
    assert (found.value, found.samples) == (pytest.approx(math.exp(loss), 1e-5), len(pairs))


def test_similarity_is_the_correlation_of_cosines(tokenizer: Path) -> None:
    table = RNG.standard_normal((7, 5))
    file = of_text(table, "last_hidden_state", tokenizer / "model.onnx")
    rows = [
        ("the cat", "a cat", 4.5),
        ("sat on", "mat", 1),
        ("the mat", "the mat", 5),
        ("cat", "on a mat", 1),
    ]
    lines = ["one\tother\tscore", *("\t".join(map(str, row)) for row in rows)]
    (tokenizer / "pairs.tsv").write_text("\n".join(lines))

    def vector(text: str) -> np.ndarray:
        mean = np.mean([table[WORDS.index(word)] for word in text.split()], axis=0)
        return mean / np.linalg.norm(mean)

    cosines = [float(vector(one) @ vector(other)) for one, other, _ in rows]
    (found,) = tmconvert.score(file, data=tokenizer / "pairs.tsv", task="similarity").files
    assert found.value == pytest.approx(spearman(cosines, [score for *_, score in rows]))


def test_word_error_rate_of_the_best_path(tmp_path: Path) -> None:
    """Each sample of the sound is a step, and its bucket the letter."""
    letters = ["<pad>", "a", "b", "|"]
    (tmp_path / "vocab.json").write_text(json.dumps({letter: at for at, letter in enumerate(letters)}))
    nodes = [
        onnx.helper.make_node("Unsqueeze", ["x", "axes"], ["steps"]),
        onnx.helper.make_node("Sub", ["steps", "centres"], ["far"]),
        onnx.helper.make_node("Abs", ["far"], ["distance"]),
        onnx.helper.make_node("Neg", ["distance"], ["logits"]),
    ]
    model = of_nodes(nodes, {"x": [1, "n"]}, ["logits"])
    levels = np.array([-1.5, -0.5, 0.5, 1.5], np.float32) / np.float32(math.sqrt(1.25))
    saved(model, {"axes": np.array([2]), "centres": levels}, tmp_path / "m.onnx")
    steps = [0, 1, 0, 2, 3, 3, 2, 1, 0, 1, 0, 2, 3, 3, 2, 0]  # "ab baab b", each as often
    with wave.open(str(tmp_path / "s.wav"), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(((np.array(steps) - 1.5) * 2000).astype("<i2").tobytes())
    (tmp_path / "list.csv").write_text("s.wav,Ab ba b\n")
    (found,) = tmconvert.score(tmp_path / "m.onnx", data=tmp_path / "list.csv", task="wer").files
    assert (found.value, found.others) == (1 / 3, {"errors": 1, "words": 3, "CER": 2 / 7})


def test_metrics_have_known_values() -> None:
    quotients = [106, 100, 86, 101, 99, 103, 97, 113, 112, 110], [7, 27, 2, 50, 28, 29, 20, 12, 6, 17]
    assert spearman(*quotients) == pytest.approx(-29 / 165)  # the example of Wikipedia
    assert spearman([1, 2, 2, 3], [1, 3, 2, 4]) == pytest.approx(0.9486832980505138)  # SciPy's
    assert word_errors(["a", "b", "c", "d"], ["a", "x", "c", "d", "e"]) == 2
    assert (word_errors([], ["a"]), word_errors(["a"], []), word_errors(["a"], ["a"])) == (1, 1, 0)
    assert np.allclose(log_likelihoods(np.zeros((2, 4)), np.array([0, 3])), -math.log(4))


def test_the_command_prints_a_table_and_ends_with_status_1(tmp_path: Path) -> None:
    for label in range(2):
        (tmp_path / "data" / str(label)).mkdir(parents=True)
        np.save(tmp_path / "data" / str(label) / "x.npy", np.eye(2, dtype=np.float32)[label][None])
    good, bad = (classifier(sign * np.eye(2), tmp_path / f"{sign}.onnx") for sign in (1, -1))
    command = ("evaluate", good, bad, "--data", tmp_path / "data", "--task", "top-1")
    outcome = run(*command, "--required-score", "0.9", "--json")
    assert outcome.status == 1
    assert [each["value"] for each in outcome.json["files"]] == [1.0, 0.0]
    shown = run(*command)
    assert shown.status == 0 and "-1.0000" in shown.stdout
    assert run("evaluate", good, "--data", tmp_path / "data").status == 2
    assert run(*command, "--min-sqnr", "3").status == 2
    (tmp_path / "data" / "7").mkdir()
    np.save(tmp_path / "data" / "7" / "x.npy", np.zeros((1, 2), np.float32))
    with pytest.raises(UsageError, match="has 2 scores of classes, but the data have the class 7"):
        tmconvert.score(good, data=tmp_path / "data", task="top-1")


def labelled(folder: Path, labels: dict[str, int]) -> Path:
    """Writes so many samples for each class; each is a row of a unit matrix."""
    for number, (label, count) in enumerate(labels.items()):
        (folder / label).mkdir(parents=True)
        for at in range(count):
            np.save(folder / label / f"{at}.npy", np.eye(4, dtype=np.float32)[number][None])
    return folder


def test_classes_are_all_folders_also_empty_ones(tmp_path: Path) -> None:
    file = classifier(np.eye(4), tmp_path / "m.onnx")
    data = labelled(tmp_path / "data", {"a": 1, "b": 0, "c": 3, "d": 1})
    (data / ".cache").mkdir()
    np.save(data / ".cache" / "x.npy", np.zeros((1, 4), np.float32))
    assert tmconvert.score(file, data=data, task="top-1").files[0][1:3] == (1.0, 5)


def test_each_row_of_a_batch_is_a_sample(tmp_path: Path) -> None:
    node = onnx.helper.make_node("MatMul", ["x", "w"], ["y"])
    model = of_nodes([node], {"x": [3, 4]}, ["y"])
    file = saved(model, {"w": np.eye(4, dtype=np.float32)}, tmp_path / "m.onnx")
    (tmp_path / "data" / "1").mkdir(parents=True)
    np.save(tmp_path / "data" / "1" / "x.npy", np.eye(4, dtype=np.float32)[[1, 1, 2]])
    assert tmconvert.score(file, data=tmp_path / "data", task="top-1").files[0][1:3] == (2 / 3, 3)


def test_folders_of_classes_that_do_not_fit(tmp_path: Path) -> None:
    file, data = classifier(np.eye(4), tmp_path / "m.onnx"), labelled(tmp_path / "data", {"a": 1, "b": 1})
    with pytest.raises(
        UsageError, match="has 4 scores of classes, but the data have the 2 classes with names"
    ):
        tmconvert.score(file, data=data, task="top-1")
    np.save(data / "x.npy", np.zeros((1, 4), np.float32))
    with pytest.raises(UsageError, match=r"1 file of .* in no folder of a class: x\.npy"):
        tmconvert.score(file, data=data, task="top-1")


@pytest.mark.parametrize(
    ("task", "content", "text"),
    [
        ("wer", b"a.wav,one, two\n", r"row 1 has 3 columns, not 2"),
        ("wer", b"file,text,speaker\na.wav,one\n", r"row 2 has 2 columns, not 3"),
        ("wer", b"a.wav\n", r"fewer columns than 2"),
        ("wer", b"", r"no rows"),
        ("wer", b"file,text\n", r"no rows after the names"),
        ("wer", b"file,text\na.mp3,one\n", r"row 2 has no data: a\.mp3,one"),
        ("wer", b"missing.wav,one\n", r"missing\.wav cannot be read"),
        ("wer", b"a.wav,\n", r"have no words"),
        ("wer", b"a.wav,\xff\n", r"cannot be read as a table"),
        ("top-1", b"missing.npy,3\n", r"missing\.npy"),
        ("top-1", b"a.npy,\n", r"without a class"),
        ("similarity", b"a,b,c\nthe,cat,0.5\nthe,mat,much\n", r"row 3 has no data: the,mat,much"),
        ("similarity", b"the,cat,nan\n", r"no rows after"),
        ("perplexity", b"\xff\xfe", r"cannot be read as a text"),
        ("perplexity", b"", r"0 tokens, fewer than a window"),
        ("map", b"{}", r"cannot be read"),
        (
            "map",
            b'{"images": [{"id": 1}], "categories": [{"id": 1}], "annotations": []}',
            r"file_name, height, width of the image 1",
        ),
    ],
)
def test_data_that_do_not_fit(task: str, content: bytes, text: str, tokenizer: Path) -> None:
    if task == "map":
        pytest.importorskip("pycocotools")
    data = tokenizer / "data.csv"
    data.write_bytes(content)
    (tokenizer / "vocab.json").write_text('{"<pad>": 0, "a": 1}')
    with wave.open(str(tokenizer / "a.wav"), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(bytes(320))
    if task in ("wer", "top-1", "map"):
        model = of_nodes([onnx.helper.make_node("Unsqueeze", ["x", "axes"], ["y"])], {"x": [1, "n"]}, ["y"])
        model = saved(model, {"axes": np.array([2])}, tokenizer / "model.onnx")
    else:
        model = of_text(RNG.standard_normal((7, 7)), "logits", tokenizer / "model.onnx")
    with pytest.raises(UsageError, match=text):
        tmconvert.score(model, data=data, task=task)
    if task != "top-1":  # whose data may be a folder
        with pytest.raises(UsageError, match="cannot be read"):
            tmconvert.score(model, data=tokenizer, task=task)


def test_logits_of_the_last_token_only_have_no_perplexity(tokenizer: Path) -> None:
    nodes = [
        onnx.helper.make_node("Gather", ["table", "input_ids"], ["all"]),
        onnx.helper.make_node("ReduceMax", ["all"], ["logits"], axes=[1]),
    ]
    model = of_nodes(nodes, {"input_ids": [1, "n"]}, ["logits"])
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    file = saved(model, {"table": np.ones((7, 7), np.float32)}, tokenizer / "model.onnx")
    (tokenizer / "text.txt").write_text("the cat sat")
    with pytest.raises(UsageError, match=r"an output \[1, 1, 7\], not logits of each of 3 tokens"):
        tmconvert.score(file, data=tokenizer / "text.txt", task="perplexity")


def test_words_are_compared_without_case_and_punctuation() -> None:
    from tmconvert.inspection.text_tasks import words_of

    assert words_of("It's a «Cat»; 3.5 kg -- no?") == ["it's", "a", "cat", "3.5", "kg", "no"]
    assert words_of("Cafe\u0301, GRÜẞE") == words_of("café grüße")
    assert words_of("你好\uff0c世界\u3002") == ["你好\uff0c世界"]
    assert words_of(" \n") == []


def test_a_folder_of_a_package_stands_for_its_model_files(tmp_path: Path) -> None:
    from tmconvert.inspection.task_score import model_files

    (tmp_path / "onnx").mkdir()
    for name in ("decoder_model_merged_q4", "decoder_model_merged", "encoder_model", "encoder_model_q4"):
        (tmp_path / "onnx" / f"{name}.onnx").touch()
    found = [Path(each).name for each in model_files(tmp_path)]
    assert found == ["decoder_model_merged.onnx", "decoder_model_merged_q4.onnx"]
    assert model_files(tmp_path / "onnx" / "encoder_model.onnx") == [tmp_path / "onnx" / "encoder_model.onnx"]
    assert model_files("no such folder") == ["no such folder"]
