"""The pass manager: order, dumps, stopping, and the report of a pass that broke something."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tmconvert.errors import GraphError, InternalError, UsageError, WriteError
from tmconvert.ir import InternalGraph
from tmconvert.ir.parser import parse_graph
from tmconvert.passes.manager import CHECK_EACH, PassManager, PassOptions
from tmconvert.passes.rewriting import PassRecord
from tmconvert.symbolics.registry import catalogue
from tmconvert.symbolics.target_names import TARGETS
from tmconvert.targets.options import TargetOptions
from tmconvert.targets.registry import passes_for

TEXT = """\
graph net(%x: f32[2,3]) -> (%z) {
  %y = aten::neg(%x) : f32[2,3]   loc("net.py":5)
  %z = aten::relu(%y) : f32[2,3]   loc("net.py":6, "act", "Act")
}
"""


class Step:
    """A pass that does what it is told."""

    def __init__(self, name: str, act: Any = None, after: tuple[str, ...] = ()) -> None:
        self.name, self.act, self.after = name, act, after
        self.is_users = False

    def run(self, graph: InternalGraph) -> PassRecord:
        record = PassRecord(self.name)
        if self.act is not None:
            self.act(graph)
            record.did(next(iter(graph)), "was looked at")
        return record


def manager(*steps: Step, **options: Any) -> PassManager:
    return PassManager(steps, catalogue(), PassOptions(**options))


def test_passes_run_in_order_and_are_timed() -> None:
    seen: list[str] = []
    steps = [Step(name, lambda graph, name=name: seen.append(name)) for name in "abc"]
    made = manager(*steps)
    made.run(parse_graph(TEXT))
    assert seen == ["a", "b", "c"]
    assert [name for name, _ in made.seconds] == seen
    assert all(seconds >= 0 for _, seconds in made.seconds)
    assert not made.stopped


def test_stop_after_ends_behind_the_first_of_that_name() -> None:
    seen: list[str] = []
    steps = [Step(name, lambda graph, name=name: seen.append(name)) for name in ("a", "b", "a", "c")]
    made = manager(*steps, stop_after="a")
    made.run(parse_graph(TEXT))
    assert seen == ["a"]
    assert made.stopped


def test_dumps_are_numbered_and_read_back(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "dumps"
    manager(Step("a"), Step("b"), Step("a"), dump_after=("a",), dump_folder=str(folder)).run(
        parse_graph(TEXT)
    )
    assert sorted(path.name for path in folder.iterdir()) == ["01-a.ir", "03-a.ir"]
    assert parse_graph((folder / "01-a.ir").read_text(encoding="utf-8")).to_text() == TEXT
    manager(Step("a"), Step("b"), dump_after=("all",), dump_folder=str(folder)).run(parse_graph(TEXT))
    assert (folder / "02-b.ir").exists()


def test_a_dump_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match=r"TM5001.*01-a\.ir"):
        manager(Step("a"), dump_after=("a",), dump_folder=str(tmp_path / "file")).run(parse_graph(TEXT))


@pytest.mark.parametrize("options", [{"stop_after": "nope"}, {"dump_after": ("a", "nope")}])
def test_unknown_passes_are_the_users_mistake(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        manager(Step("b"), Step("a"), **options)
    assert "error[TM6006]: unknown pass 'nope'" in str(caught.value)
    assert "passes: a, b" in str(caught.value)


def test_the_order_is_checked_before_anything_runs() -> None:
    with pytest.raises(InternalError, match="the pass late must come after early, other"):
        manager(Step("late", after=("early", "other")), Step("early"), Step("other"))
    manager(Step("early"), Step("other"), Step("late", after=("early", "other")))


def broken_by(act: Any) -> GraphError:
    with pytest.raises(GraphError) as caught:
        manager(Step("first"), Step("second"), Step("culprit", act), Step("last")).run(parse_graph(TEXT))
    return caught.value


def test_a_broken_invariant_names_the_pass_its_predecessors_and_the_neighbours() -> None:
    error = broken_by(lambda graph: setattr(graph.last.output, "shape", (3, 2)))
    assert str(error).splitlines() == [
        "error[TM3015]: declared f32[3,2], computed f32[2,3]",
        "  --> net.py:6, in Act (act)",
        "   |",
        '   |    %y = aten::neg(%x) : f32[2,3]   loc("net.py":5)',
        '   |  > %z = aten::relu(%y) : f32[3,2]   loc("net.py":6, "act", "Act")',
        "   |",
        "   = pass: culprit",
        "   = before it: first, second",
    ]
    assert error.exit_status == 3


def test_without_the_check_of_each_pass_the_last_one_finds_the_mistake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def act(graph: InternalGraph) -> None:
        graph.last.output.shape = (3, 2)

    monkeypatch.delenv(CHECK_EACH)
    error = broken_by(act)
    assert str(error).splitlines()[0] == "error[TM3015]: declared f32[3,2], computed f32[2,3]"
    assert ("before it", "first, second, culprit") in error.notes
    assert ("help", f"{CHECK_EACH}=1 in the environment finds the pass that made the mistake") in error.notes
    culprit = Step("culprit", act)
    culprit.is_users = True
    with pytest.raises(UsageError, match=r"TM6053.*the pass culprit left a graph that is not valid"):
        manager(culprit, Step("last")).run(parse_graph(TEXT))


def test_a_refused_edit_names_the_pass_too() -> None:
    error = broken_by(lambda graph: graph.remove(graph.last))
    assert error.code == "TM3002"
    assert error.notes[:2] == (("pass", "culprit"), ("before it", "first, second"))


def test_what_a_pass_ensures_is_checked() -> None:
    class Promising(Step):
        def ensures(self, graph: InternalGraph) -> None:
            raise GraphError("TM3019", "not kept")

    with pytest.raises(GraphError, match=r"(?s)not kept.*pass: promise.*before it: none"):
        manager(Promising("promise")).run(parse_graph(TEXT))


@pytest.mark.parametrize("target", TARGETS)
def test_pipelines_are_in_an_order_that_the_manager_accepts(target: str) -> None:
    steps = passes_for(TargetOptions(target, 17), catalogue())
    PassManager(steps, catalogue()).run(parse_graph(TEXT))
    assert all(step.name == step.name.lower() for step in steps)


def test_what_a_pass_touched_is_verified_behind_it() -> None:
    def retype(graph: InternalGraph) -> None:
        graph.outputs[0].shape = (3, 2)  # type: ignore[attr-defined]

    with pytest.raises(GraphError, match="TM3015") as caught:
        manager(Step("a"), Step("b", retype), Step("c")).run(parse_graph(TEXT))
    assert ("pass", "b") in caught.value.notes


def test_what_changed_unseen_is_found_in_the_end() -> None:
    class Silent(Step):
        def run(self, graph: InternalGraph) -> PassRecord:
            super().run(graph)
            return PassRecord(self.name)

    def spoil(graph: InternalGraph) -> None:
        graph.outputs[0].expr.kwargs["negative_slope"] = 1  # type: ignore[union-attr]

    with pytest.raises(GraphError, match="TM3014"):
        manager(Step("a"), Silent("b", spoil), Step("c")).run(parse_graph(TEXT))


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_removes_what_computes_nothing_new(target: str) -> None:
    names = {step.name for step in passes_for(TargetOptions(target, 17), catalogue())}
    assert names >= {"drop_identities", "eliminate_common_subexpressions", "fold_scale_bias"}
