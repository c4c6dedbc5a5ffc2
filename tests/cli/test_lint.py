"""``tmconvert lint``."""

from __future__ import annotations

from pathlib import Path

from tests.cli.runner import run

BAD = """\
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 3 dim: 8 dim: 8 } } }
layer { name: "p" type: "Power" bottom: "x" top: "p" power_param { power: 4 } }
layer { name: "y" type: "Power" bottom: "p" top: "y" power_param { power: 5 } }
layer { name: "z" type: "Input" top: "z" input_param { shape { dim: 1 dim: 3 dim: 8 } } }
"""


def test_a_net_without_faults(tmp_path: Path) -> None:
    path = tmp_path / "net.prototxt"
    path.write_text(BAD, encoding="utf-8")
    outcome = run("lint", path)
    assert (outcome.status, outcome.stderr) == (0, "")
    assert outcome.stdout == f"ok: {path} keeps to the dialect bvlc\n"


def test_faults_by_rule(tmp_path: Path) -> None:
    path = tmp_path / "net.prototxt"
    path.write_text(BAD, encoding="utf-8")
    outcome = run("lint", path, "--dialect", "nnie")
    assert (outcome.status, outcome.stderr) == (1, "")
    assert outcome.stdout == (
        "3 violations of 2 rules of the dialect nnie\n"
        "\n"
        "nnie-exponent\n"
        "  line 2: p: exponent is 4, but HiSilicon NNIE supports one of -3, -2, -1, -0.5, 0.5, 1, 2, 3\n"
        "  line 3: y: exponent is 5, but HiSilicon NNIE supports one of -3, -2, -1, -0.5, 0.5, 1, 2, 3\n"
        "  help: make the power of several of these\n"
        "\n"
        "nnie-rank  (no document confirms it)\n"
        "  line 4: z: rank of inputs is 3, but HiSilicon NNIE supports one of 2, 4\n"
        "  help: give the net inputs of two or four axes\n"
    )


def test_json(tmp_path: Path) -> None:
    path = tmp_path / "net.prototxt"
    path.write_text("layer {", encoding="utf-8")
    outcome = run("lint", path, "--json")
    assert outcome.status == 1
    assert outcome.json == {
        "file": str(path),
        "dialect": "bvlc",
        "ok": False,
        "violations": [
            {
                "rule": "syntax",
                "layer": "",
                "line": 1,
                "message": "expected a field or '}', found 'the end of the file'",
                "help": "correct the text: it must be a message in protobuf's text form",
                "confirmed": True,
            }
        ],
    }


def test_no_such_file_and_no_such_dialect(tmp_path: Path) -> None:
    outcome = run("lint", tmp_path / "net.prototxt")
    assert outcome.status == 1
    assert "cannot read the file" in outcome.stderr
    assert run("lint", tmp_path / "net.prototxt", "--dialect", "novatek").status == 2
