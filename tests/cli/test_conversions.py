"""``tmconvert onnx``, ``tflite`` and ``caffe``: results, messages, options of the passes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.runner import model, run
from tmconvert import api_convert
from tmconvert.conversion.report import Report
from tmconvert.errors.source import Source
from tmconvert.ir import TensorNode
from tmconvert.passes.rewriting import PassRecord

CONV = model("op_s_conv_bn_relu")
SMALL = ("op_s_conv_bn_relu", "op_s_elemwise", "op_s_flatten_linear")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize(
    ("target", "out"),
    [("onnx", ["out.onnx"]), ("tflite", ["out.tflite"]), ("caffe", ["out.prototxt", "out.caffemodel"])],
)
def test_converts(name: str, target: str, out: list[str], folder: Path) -> None:
    outcome = run(target, model(name), out[0])
    assert outcome.status == 0, outcome.stderr
    assert names(folder) == sorted(out)
    assert [line.split()[0] for line in outcome.stdout.splitlines() if line[0] != " "] == out
    assert re.fullmatch(
        r"verified (in [\w ]+|with the NumPy definitions of Caffe's layers in tmconvert) [\d.]+ "
        r"against tmconvert's own reading of the source: "
        r"(max error \d\.\de-\d\d \(limit 1e-04\)|equal outputs)\n",
        outcome.stderr,
    )


@pytest.mark.parametrize(
    "command",
    ["onnx {} x.onnx/", "tflite {} x.tflite/", "caffe {} x.prototxt/", "save {} x.tm/", "{} x.onnx/"],
)
def test_a_folder_as_output(command: str, folder: Path) -> None:
    outcome = run(*command.format(model(SMALL[0])).split())
    assert outcome.status == 2 and "which does not end as that of a folder" in outcome.stderr
    assert names(folder) == []


def test_lines_for_onnx(folder: Path) -> None:
    outcome = run("onnx", CONV, "o.onnx", "--opset", "13", "--no-verify")
    assert outcome.stdout == (
        "o.onnx  (ONNX opset 13, 2 operators, 224 parameters)\n"
        "  in   x      float32[1,3,32,32]  NCHW\n"
        "  out  r_out  float32[1,8,16,16]  NCHW\n"
    )
    assert outcome.stderr == "not verified: --no-verify was given\n"
    assert names(folder) == ["o.onnx"]


def test_lines_for_tflite(folder: Path) -> None:
    outcome = run("tflite", CONV, "o.tflite", "--io-layout", "source", "--no-verify")
    first = outcome.stdout.splitlines()[0]
    assert re.fullmatch(r"o\.tflite  \(TFLite 2\.\d+, \d+ operators?, 224 parameters\)", first)


@pytest.mark.slow
def test_a_caffe_net_beyond_the_limits_of_its_dialect(folder: Path) -> None:
    outcome = run("caffe", model("vit_tiny"), "net.prototxt", "--dialect", "nnie")
    assert (outcome.status, outcome.stdout, names(folder)) == (1, "", [])
    assert outcome.stderr.startswith(
        "error[TM2019]: the net exceeds the limits of HiSilicon NNIE: nnie-batch: layer "
    )
    assert "help: cut and join along other axes" in outcome.stderr
    assert run("caffe", model("shufflenet_v2"), "net.prototxt", "--dialect", "ascend").status == 0


def test_lines_for_caffe(folder: Path) -> None:
    outcome = run("caffe", CONV, "net.prototxt", "weights.caffemodel", "--no-verify", "--dialect", "bvlc")
    first, second, *fed = outcome.stdout.splitlines()
    assert first == "net.prototxt  (Caffe, dialect bvlc, 2 layers, 224 parameters)"
    assert re.fullmatch(r"weights\.caffemodel  \(weights, 1\.\d kB\)", second)
    assert [line.split()[:2] for line in fed] == [["in", "x"], ["out", "r_out"]]
    assert names(folder) == ["net.prototxt", "weights.caffemodel"]


def test_missing_runtime_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tmconvert.verification.verify.runtime_of", lambda graph, path: None)
    outcome = run("onnx", CONV, "o.onnx")
    assert outcome.status == 0
    assert outcome.stderr == "not verified: no runtime for ONNX is installed (pip install 'onnxruntime')\n"


def test_json_is_the_report(folder: Path) -> None:
    outcome = run("onnx", CONV, "o.onnx", "--json")
    document = outcome.json
    assert outcome.status == 0
    assert outcome.stderr.startswith("verified in ONNX Runtime ")
    assert (document["target"], document["version"], document["paths"]) == ("onnx", 17, ["o.onnx"])
    assert document["verified"] is True
    assert document["max_error"] < 1e-4
    assert document["verification"]["outputs"][0]["shape"] == [1, 8, 16, 16]


def test_options_reach_the_library(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {}

    def to_tflite(source: str, path: str, **options: object) -> Report:
        seen.update(options, source=source, path=path)
        return Report("tflite", "2.18", ())

    monkeypatch.setattr(api_convert, "to_tflite", to_tflite)
    monkeypatch.setattr("tmconvert.conversion.report_text.results", lambda report: [])
    outcome = run(
        *("tflite", "m.tm", "o.tflite", "--quantized", "--calibration", "d", "--qparams", "q.json"),
        *("--qparams-format", "aimet", "--fake-quant-weights"),
        *(
            "--io-layout",
            "source",
            "--runtime",
            "2.12",
            "--weights",
            "int8",
            "--activations",
            "int16",
            "--io-type",
            "float32",
            "--allow-float",
            "--wide-weights",
            "--keep-int64",
            "--dump-after",
            "a, b",
            "--dump-folder",
            "d",
            "--stop-after",
            "c",
        ),
    )
    assert outcome.status == 0
    passes = seen.pop("pass_options")
    assert (passes.dump_after, passes.dump_folder, passes.stop_after) == (("a", "b"), "d", "c")
    taken = [seen.pop(name) for name in ("activations", "io_type", "allow_float", "wide_weights")]
    assert taken == ["int16", "float32", True, True]
    assert seen == {
        "source": "m.tm",
        "path": "o.tflite",
        "quantized": True,
        "calibration": "d",
        "qparams": "q.json",
        "qparams_format": "aimet",
        "fake_quant_weights": True,
        "io_layout": "source",
        "runtime": "2.12",
        "weights": "int8",
        "keep_int64": True,
        "verify": True,
    }


def test_verbose_shows_log_messages(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import logging

    def to_onnx(*args: object, **options: object) -> Report:
        logger = logging.getLogger("tmconvert.passes.fuse_conv_bn")
        logger.debug("something of no importance")
        logger.warning("one thing more")
        return Report("onnx", 17, (), stopped=True, seconds=[("fuse_conv_bn", 0.0)])

    monkeypatch.setattr(api_convert, "to_onnx", to_onnx)
    stopped = "stopped after fuse_conv_bn: no model was written\n"
    quiet, verbose = run("onnx", "m", "o"), run("onnx", "m", "o", "-v")
    assert quiet.stderr == "warning: one thing more\n" + stopped
    assert verbose.stderr == "something of no importance\nwarning: one thing more\n" + stopped
    assert logging.getLogger("tmconvert").handlers == []


def test_verbose_shows_what_each_pass_did(folder: Path) -> None:
    """Of a convolution and a batch norm of MegEngine, fused: its lines are those of the model file."""
    assert "fuse_conv_bn" not in run("onnx", CONV, "o.onnx", "--no-verify").stderr
    lines = run("onnx", CONV, "o.onnx", "--no-verify", "-v").stderr.splitlines()
    assert "fuse_conv_bn: 1 change" in lines
    assert not [line for line in lines if "was fused" in line]
    lines = run("onnx", CONV, "o.onnx", "--no-verify", "-vv").stderr.splitlines()
    (change,) = [line for line in lines if "was fused" in line]
    assert re.fullmatch(
        r"fuse_conv_bn: `\w+` was fused into `\w+` \(.*op_s_conv_bn_relu\.tm:%\d+, in .*\)", change
    )


def test_verbose_shows_each_reason_a_few_times(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the last run of a pass; alike are those that differ in names of nodes only."""
    early, late = PassRecord("fuse_views"), PassRecord("fuse_views")
    early.refuse(_Step("gone"), "its input is an output")
    early.did(_Step("a"), "was fused into `b`")
    for number in range(5):
        late.refuse(_Step(f"x{number}"), f"`y{number}` has other users")
    late.refuse(_Step("z"), "its input is an output")
    report = Report("onnx", 17, (), stopped=True, seconds=[("fuse_views", 0.0)], passes=[early, late])
    monkeypatch.setattr(api_convert, "to_onnx", lambda *args, **options: report)
    few = [
        "fuse_views: 1 change in 2 runs, 6 refusals",
        "fuse_views: `x0` stays: `y0` has other users (model.py:3)",
        "fuse_views: `x1` stays: `y1` has other users (model.py:3)",
        "fuse_views: `x2` stays: `y2` has other users (model.py:3)",
        "fuse_views: 2 more refusals for the same reason (-vv shows all)",
        "fuse_views: `z` stays: its input is an output (model.py:3)",
    ]
    assert run("onnx", "m", "o", "-v").stderr.splitlines()[:-1] == few
    shown = run("onnx", "m", "o", "-vv").stderr.splitlines()
    assert shown[1] == "fuse_views: `a` was fused into `b` (model.py:3)"
    assert sum("stays" in line for line in shown) == 6


class _Step:
    """An expression of one result."""

    source = Source("model.py", 3)

    def __init__(self, name: str) -> None:
        self.outputs = [TensorNode(name)]


def test_dump_after(folder: Path) -> None:
    outcome = run("onnx", CONV, "o.onnx", "--dump-after", "fuse_conv_bn", "--dump-folder", "dumps")
    assert outcome.status == 0
    assert outcome.stderr.startswith("wrote the graphs to dumps\n")
    (dump,) = (folder / "dumps").iterdir()
    assert re.fullmatch(r"\d\d-fuse_conv_bn\.ir", dump.name)
    assert dump.read_text().startswith("graph CBR(%x: f32[1,3,32,32]")


def test_dumps_go_beside_the_output(folder: Path) -> None:
    (folder / "out").mkdir()
    outcome = run("onnx", CONV, "out/o.onnx", "--dump-after", "fuse_conv_bn")
    assert outcome.stderr.startswith("wrote the graphs to out/o.onnx.passes\n")
    assert names(folder) == ["out"]
    assert names(folder / "out") == ["o.onnx", "o.onnx.passes"]


def test_stop_after_writes_no_model(folder: Path) -> None:
    outcome = run("caffe", CONV, "o.prototxt", "--stop-after", "fold_constants")
    assert (outcome.status, outcome.stdout) == (0, "")
    assert outcome.stderr == "stopped after fold_constants: no model was written\n"
    assert names(folder) == []


def test_time_passes(folder: Path) -> None:
    outcome = run("onnx", CONV, "o.onnx", "--time-passes", "--no-verify")
    header, *rows, last = outcome.stderr.splitlines()
    assert header.split() == ["ms", "pass"]
    assert all(re.fullmatch(r" *\d+\.\d  [a-z_ ]+", row) for row in rows)
    assert rows[-1].split()[1:] == ["all", "passes"]
    assert "fuse_conv_bn" in outcome.stderr
    assert last.startswith("not verified")


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["onnx", CONV, "o.onnx", "--opset", "99"], "TM6001", "opset 99 is not supported"),
        (["onnx", CONV, "o.onnx", "--opset", "6"], "TM6001", "opset 6 is not supported"),
        (["onnx", CONV, "o.onnx", "--opset", "new"], "TM6010", "'--opset': 'new' is not a valid integer"),
        (["onnx", CONV], "TM6010", "missing argument 'OUT.onnx'"),
        (["onnx", CONV, "o.onnx", "more"], "TM6010", "unexpected extra argument"),
        (["onnx", CONV, "o.onnx", "--bogus"], "TM6010", "--bogus"),
        (["onnx", CONV, "o.onnx", "--dump-after", "nothing"], "TM6006", "unknown pass 'nothing'"),
        (["onnx", CONV, "o.onnx", "--stop-after", "nothing"], "TM6006", "unknown pass 'nothing'"),
        (["onnx", CONV, "o.onnx", "--dump-folder", "d"], "TM6010", "--dump-folder requires --dump-after"),
        (
            ["tflite", CONV, "o.tflite", "--io-layout", "nchw"],
            "TM6010",
            "--io-layout nchw: write nhwc, source, NAME=nhwc",
        ),
        (["caffe", CONV, "o.prototxt", "--dialect", "x"], "TM6010", "'x' is not"),
        (["caffe", CONV, "o.prototxt", "o.prototxt"], "TM6007", "would be the same file"),
        (["caffee", CONV, "o.prototxt"], "TM6010", "unknown command 'caffee', did you mean 'caffe'?"),
    ],
)
def test_wrong_usage(args: list[str], code: str, said: str, folder: Path) -> None:
    outcome = run(*args)
    assert (outcome.status, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith(f"error[{code}]: ")
    assert said in outcome.stderr.splitlines()[0]
    assert names(folder) == []


def test_unwritable_outputs(folder: Path) -> None:
    (folder / "file").write_text("kept")
    for out, reason in [("no/o.onnx", "No such file"), ("file/o.onnx", "Not a directory"), (".", "Is a dir")]:
        outcome = run("onnx", CONV, out)
        assert (outcome.status, outcome.stdout) == (1, "")
        assert outcome.stderr.startswith(f"error[TM5001]: cannot write {out}: {reason}")
    assert names(folder) == ["file"]


def test_unsupported_ops_write_nothing(folder: Path) -> None:
    (folder / "o.onnx").write_text("older")
    outcome = run("onnx", model("custom_user_function"), "o.onnx")
    assert (outcome.status, outcome.stdout) == (1, "")
    assert outcome.stderr.startswith("error[TM2003]: userlib_layers.my_act is not supported\n  --> ")
    assert "\n   = see: run `tmconvert check MODEL --target onnx` for the whole list\n" in outcome.stderr
    assert names(folder) == ["o.onnx"]
    assert (folder / "o.onnx").read_text() == "older"


def test_errors_as_json(folder: Path) -> None:
    outcome = run("onnx", model("custom_user_function"), "o.onnx", "--json")
    assert outcome.status == 1
    assert outcome.json["error"]["code"] == "TM2003"
    assert "userlib_layers.my_act(" in outcome.json["error"]["excerpt"]
    assert outcome.stderr.startswith("error[TM2003]: ")
    usage = run("onnx", "--json")
    assert usage.status == 2
    assert usage.json["error"]["message"] == "missing argument 'MODEL'"
