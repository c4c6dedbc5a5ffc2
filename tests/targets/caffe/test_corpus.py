"""What is written for a dialect keeps to it, or is refused with the name of a rule or of a layer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.corpus_targets import models
from tests.models import corpus
from tmconvert import api
from tmconvert.errors import UnsupportedError
from tmconvert.formats.caffe.dialects import DIALECTS

# the models that are refused: for lack of a layer, or for a limit
ROUNDING = {"op_elemwise_arith", "op_setitem_shift", "op_trig_compare", "op_typecvt"}
TOPK = {"v1_6_0_ops", "v1_7_0_ops", "v1_9_1_ops", "v1_12_4_ops"}
EMBEDDING = {"op_embedding_argmax", "op_mha_rnncell", "op_sort_gather_onehot", "text_lstm"}
PRODUCTS = {"op_linear_matmul", "op_mha_rnncell", "vit_tiny"}  # of computed matrices
OF_NO_OR_FIVE_AXES = {"op_conv1d_conv3d_lrn", "op_reduce", "op_subtensor"}
TAKE_THE_BATCH = {  # as one axis with others, or away
    "op_linear_matmul",
    "op_reduce",
    "op_shape",
    "op_subtensor",
    "vit_tiny",
}
WITHOUT_LAYERS = {*ROUNDING, *TOPK, *EMBEDDING, "det_yolox_focus", "mlp_mixer", "op_activations"} | {
    "op_softmax_dropout",
    "vit_tiny",
}
OTHER_INPUTS = {"op_conv1d_conv3d_lrn", "op_linear_matmul", "op_multi_io"}  # not of four axes
REFUSED: dict[str, set[str]] = {
    "bvlc": set(),
    "opencv": {*TOPK, *EMBEDDING, "op_reduce", "op_subtensor"},
    "nnie": {*ROUNDING, *EMBEDDING, *TAKE_THE_BATCH},
    "ascend": ROUNDING,
    "mnn": {*TOPK, *EMBEDDING, *PRODUCTS, *OF_NO_OR_FIVE_AXES} - {"text_lstm"},
    "snpe": {*WITHOUT_LAYERS, *OTHER_INPUTS},
    "trt": {*WITHOUT_LAYERS, *OTHER_INPUTS, "op_reduce", "op_shape", "op_subtensor"},
    "ncnn": {
        *TOPK,
        *EMBEDDING,
        *TAKE_THE_BATCH,
        "op_conv1d_conv3d_lrn",
        "op_setitem_shift",
        "op_softmax_dropout",
    },
}
REASONS = re.compile("has no [A-Z]\\w+ layer|no layer rounds")


@pytest.mark.parametrize("name", models())
@pytest.mark.parametrize("dialect", DIALECTS)
def test_clean_or_refused(name: str, dialect: str, tmp_path: Path) -> None:
    rules = {rule.name: rule for rule in DIALECTS[dialect].rules}
    try:
        report, (prototxt, _) = corpus.converted(
            name, "caffe", tmp_path, dialect=dialect, verify=dialect == "opencv"
        )
    except UnsupportedError as error:
        assert name in REFUSED[dialect], error
        assert [*tmp_path.iterdir()] == []
        limits = [rule for rule in rules if f"{rule}:" in error.message]
        assert all(rules[rule].confirmed for rule in limits)
        assert (error.code == "TM2019") == bool(limits)
        assert limits or REASONS.search(error.message)
        return
    assert name not in REFUSED[dialect], "take it off the list"
    found = api.lint(prototxt, dialect)
    assert not [violation for violation in found if violation.confirmed]
    assert [note for note in report.notes if note.startswith(dialect)] == [f"{dialect}: {it}" for it in found]
