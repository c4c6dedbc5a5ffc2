"""Replaces operators that a profile does not run by forms that it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tmconvert.lowering.rewriting import names_of_values, producers, users
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.passes.rewriting import PassRecord
from tmconvert.profiles.judge import broken_rules
from tmconvert.profiles.operation import operation_of
from tmconvert.profiles.profile import Profile
from tmconvert.targets.tflite.alternatives.broadcasts import BROADCASTS
from tmconvert.targets.tflite.alternatives.form_writer import FormWriter, numbers
from tmconvert.targets.tflite.alternatives.functions import FUNCTIONS
from tmconvert.targets.tflite.alternatives.gathers import GATHERS
from tmconvert.targets.tflite.alternatives.ranks import RANKS
from tmconvert.targets.tflite.alternatives.reductions import REDUCTIONS
from tmconvert.targets.tflite.alternatives.resizes import RESIZES
from tmconvert.targets.tflite.alternatives.tables import TABLES
from tmconvert.targets.tflite.alternatives.windows import WINDOWS

# an alternative: the operators, or None where it does not apply
Form = Callable[[FormWriter], "list[Operator] | None"]
_DEEPEST = 4  # forms of operators that forms consist of


def _forms() -> Mapping[str, Sequence[Form]]:
    found: dict[str, list[Form]] = {}
    for table in (REDUCTIONS, BROADCASTS, WINDOWS, RESIZES, GATHERS, TABLES, FUNCTIONS, RANKS):
        for names, form in table:
            for name in names.split():
                found.setdefault(name, []).append(form)
    return found


def take_alternatives(graph: TargetGraph, profile: Profile) -> PassRecord:
    """Writes operators that the profile does not run in another form, in place, where one runs as a whole."""
    record = PassRecord("take_alternatives")
    rewriter = _Rewriter(graph, profile)
    made: list[Operator] = []
    for operator in graph.operators:
        found = rewriter.alternative(operator)
        if found is not None:
            types = ", ".join(dict.fromkeys(each.type for each in found))
            record.did(operator, f"is {types} now, for {profile.title}")
        made += [operator] if found is None else found
    graph.operators = made
    _merge_reshapes(graph)
    return record


class _Rewriter:
    def __init__(self, graph: TargetGraph, profile: Profile) -> None:
        self.profile, self.names, self.forms = profile, names_of_values(graph), _forms()
        self.made_by = producers(graph)

    def alternative(self, operator: Operator, depth: int = 0) -> list[Operator] | None:
        """Returns operators that run where ``operator`` does not; None where it runs, or nothing does.

        Operators of a form may be in another form in turn; RESHAPE beyond the ranks of the profile may
        remain, as neighbours of it may vanish together.
        """
        if self._runs(operator) or depth >= _DEEPEST:
            return None
        for form in self.forms.get(operator.type, ()):
            made = form(FormWriter(operator, self.names, self.made_by))
            if made is None:
                continue
            whole = [part for each in made for part in self._with_forms(each, operator, depth)]
            if all(self._runs(each) or each.type == "RESHAPE" for each in whole):
                return whole
        return None

    def _with_forms(self, part: Operator, of: Operator, depth: int) -> list[Operator]:
        if part.type == of.type and len(part.inputs[0].shape if part.inputs[0] else ()) == len(
            of.inputs[0].shape if of.inputs[0] else ()
        ):
            depth += 1
        found = self.alternative(part, depth + 1)
        return [part] if found is None else found

    def _runs(self, operator: Operator) -> bool:
        return next(broken_rules(self.profile, operation_of(operator)), None) is None


def _merge_reshapes(graph: TargetGraph) -> None:
    """Makes chains of RESHAPE one, which reads what the first one reads; drops operators without users."""
    made_by = producers(graph)
    for operator in graph.operators:
        while operator.type == "RESHAPE" and operator.inputs[0] is not None:
            before = made_by.get(id(operator.inputs[0]))
            if before is None or before.type != "RESHAPE" or not _same_numbers(before):
                break
            operator.inputs[0] = before.inputs[0]
    results = {id(value) for value in graph.outputs}
    while True:
        taken = users(graph)
        kept = [
            operator
            for operator in graph.operators
            if not operator.outputs
            or any(id(each) in results or taken.get(id(each)) for each in operator.outputs)
        ]
        if len(kept) == len(graph.operators):
            return
        graph.operators = kept


def _same_numbers(reshape: Operator) -> bool:
    x, made = reshape.inputs[0], reshape.outputs[0]
    return x is not None and _parameters(x) == _parameters(made) and numbers_are_static(reshape)


def numbers_are_static(reshape: Operator) -> bool:
    return len(reshape.inputs) < 2 or numbers(reshape.inputs[1]) is not None


def _parameters(value: Value) -> tuple[object, ...]:
    known = value.quantization
    if known is None:
        return value.dtype, value.qparams
    zero = 0 if known.zero_point is None else known.zero_point.tolist()
    return value.dtype, known.scale.tolist(), zero
