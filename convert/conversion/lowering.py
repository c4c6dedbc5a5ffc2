"""The first half of a conversion: from a model to the operators of its target.

With dynamic shapes it is repeated whenever a symbolic size is bound to another or specialized.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tmconvert.conversion.io_overrides import NO_OVERRIDES, BoundModel, IoOverrides, bind_model
from tmconvert.errors import InternalError, UnsupportedError, UsageError
from tmconvert.ir import InternalGraph, TensorNode, TracedModule
from tmconvert.ir.expr import CallFunction
from tmconvert.ir.random_calls import set_seed
from tmconvert.ir.symbolic.data_dependent import depends_on_data
from tmconvert.ir.symbolic.dims import Dim, example, is_symbolic
from tmconvert.ir.symbolic.journal import SizeJournal, SizesSpecialized, note_of, summarized
from tmconvert.ir.symbolic.open_sizes import not_dynamic
from tmconvert.ir.traced_module import Example
from tmconvert.lowering.target_graph import TargetGraph
from tmconvert.passes.decompose import Undecomposed
from tmconvert.passes.manager import PassManager, PassOptions
from tmconvert.passes.normalize import Normalized
from tmconvert.symbolics.op import Op, Ops
from tmconvert.targets.options import TargetOptions
from tmconvert.targets.registry import target_named
from tmconvert.targets.target import Target

if TYPE_CHECKING:
    from tmconvert.conversion.size_ranges import SizeChecks, Trial
    from tmconvert.passes.unsupported import Unsupported


MAX_ATTEMPTS = 100
IMAGE_SIZES = (224, 256, 299, 32, 28, 128, 320, 384, 416, 448, 512, 640)  # that models often need


@dataclass
class LoweredModel:
    """The lowered graph, with normalized graphs of its source as references.

    The first reference is for the sizes of the example, the others for other values of dynamic sizes.
    ``lowered`` is the graph after the passes. ``truths`` are the outputs of the source framework at these
    sizes, where it is available; ``ranges`` describes the guards of the sizes.
    """

    references: list[InternalGraph]
    truths: list[Example | None]
    ranges: list[str]
    lowered: InternalGraph
    graph: TargetGraph
    nhwc_inputs: tuple[bool, ...]
    nhwc_outputs: tuple[bool, ...]
    manager: PassManager
    notes: list[str]

    @property
    def layouts(self) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
        return self.nhwc_inputs, self.nhwc_outputs


def survey(
    module: TracedModule, options: TargetOptions, catalogue: Ops, overrides: IoOverrides = NO_OVERRIDES
) -> list[Unsupported]:
    """Returns every expression that would stop this conversion; an empty list when it would succeed."""
    bound = bind_model(module, overrides, catalogue)
    with SizeJournal():
        normalized = bound.normalized(catalogue, bound.example())
        return _blocked(normalized, options, catalogue) or _lacking(normalized.graph, options, catalogue)


def sufficient_version(
    module: TracedModule, options: TargetOptions, catalogue: Ops, overrides: IoOverrides = NO_OVERRIDES
) -> int | None:
    """Returns the lowest newer version from which on all versions support the module; None without one."""
    bound = bind_model(module, overrides, catalogue)
    with SizeJournal():
        normalized = bound.normalized(catalogue, bound.example())
        return None if normalized.unsupported else _sufficient(normalized.graph, options, catalogue)


def with_version(
    module: TracedModule, options: TargetOptions, catalogue: Ops, overrides: IoOverrides = NO_OVERRIDES
) -> TargetOptions:
    """Returns options with the lowest version that supports the module, where they ask for it.

    Without such a version they are unchanged, and the conversion raises the error.
    """
    if not options.takes_lowest or not survey(module, options, catalogue, overrides):
        return options
    version = sufficient_version(module, options, catalogue, overrides)
    return options if version is None else options._replace(version=version)


def with_layout(module: TracedModule, options: TargetOptions) -> TargetOptions:
    """Returns options with which images keep their layout where the source has channels last."""
    if module.vocabulary is None or not module.vocabulary.is_channels_last:
        return options
    return options._replace(io_layout="source", io_layouts=())


def _sufficient(graph: InternalGraph, options: TargetOptions, catalogue: Ops) -> int | None:
    found = None
    for version in reversed(target_named(options.target).newer_versions(options.version)):
        if _lacking(graph.copy(), TargetOptions(options.target, version), catalogue):
            break
        found = version
    return found


def _blocked(normalized: Normalized, options: TargetOptions, catalogue: Ops) -> list[Unsupported]:
    """Returns what stops a model before any pass; empty where nothing does.

    Passes for a target without dynamic shapes do not expect data-dependent sizes.
    """
    has_dynamic_shapes = target_named(options.target).has_dynamic_shapes
    blocked = [*normalized.unsupported, *normalized.random_calls(is_allowed=options.allow_random)]
    if blocked or (not has_dynamic_shapes and depends_on_data(normalized.graph)):
        return [*blocked, *_without_symbolic(normalized, options, catalogue)]
    return []


def _lacking(graph: InternalGraph, options: TargetOptions, catalogue: Ops) -> list[Unsupported]:
    """Returns what stops a normalized graph, which the passes change."""
    target = target_named(options.target)
    try:
        PassManager(target.passes(options, catalogue), catalogue).run(graph)
    except Undecomposed as found:
        return [found.unsupported]
    return target.lower(graph, catalogue, options).unsupported


def _without_symbolic(normalized: Normalized, options: TargetOptions, catalogue: Ops) -> list[Unsupported]:
    """Returns ops without symbolic for the target, without lowering them, since some types are unknown."""
    found, target, version = [], options.target, options.version
    from tmconvert.passes.unsupported import Unsupported

    for expr in normalized.graph:
        op = catalogue.get(expr.function) if isinstance(expr, CallFunction) else None
        if op is None or op.lookup(target, version) or op.is_decomposed(target, version):
            continue
        reason = op.reasons.get(target, f"no {target} symbolic for {op.name}")
        found.append(Unsupported(expr, reason))
    return found


def lowered(
    module: TracedModule,
    options: TargetOptions,
    catalogue: Ops,
    pass_options: PassOptions | None = None,
    overrides: IoOverrides = NO_OVERRIDES,
) -> LoweredModel:
    """Runs passes and lowering. Raises UnsupportedError with all unsupported calls.

    When symbolic sizes are bound or specialized, it is repeated with these sizes.
    """
    bound = bind_model(module, overrides, catalogue)._replace(
        bakes_weights=options.bakes_weights, keeps_ranges=options.keeps_ranges
    )
    target = target_named(options.target)
    if bound.symbols and not target.has_dynamic_shapes:
        shapes = [
            f"--input-shape {name}={','.join(str(example(size)) for size in shape)}"
            for name, shape in bound.shapes.items()
            if is_symbolic(shape)
        ]
        raise UsageError(
            "TM6014",
            f"dynamic sizes are not available for {target.title} yet",
            notes=[("help", f"give the inputs static sizes: {' '.join(shapes)}")],
        )
    attempt = _Attempt(module, target, options, catalogue, pass_options or PassOptions(), overrides)
    try:
        return _resolved(attempt, bound)
    except UnsupportedError as error:
        is_known = module.rerun or overrides.input_shapes or overrides.is_part
        fix = {} if is_known else _admitted(attempt, bound)
        if not fix:
            raise
        runs, fails = (
            ", ".join(f"{name} = {sizes[name]}" for name in fix) for sizes in (fix, bound.example())
        )
        why = error.message.partition(": ")[2] if error.code == "TM2031" else error.message
        reason = f"the model runs at {runs}, but not at {fails} ({why})"
        raise not_dynamic(dict.fromkeys(fix, reason), fix) from error


def in_words(texts: Sequence[str]) -> list[str]:
    """Returns texts about sizes with Python's operators where these are computed in floats."""
    if not any("64(" in text for text in texts):
        return list(texts)
    from tmconvert.conversion.refused_ranges import infix

    return list(map(infix, texts))


def _resolved(attempt: _Attempt, bound: BoundModel) -> LoweredModel:
    """Runs passes and lowering until all sizes are resolved."""
    for _ in range(MAX_ATTEMPTS):
        with SizeJournal(bound.symbols) as journal:
            try:
                model = attempt.run(bound, journal)
                model.notes += [*bound.remarks.values(), *note_of(in_words(model.ranges))]
                return model
            except SizesSpecialized:
                pass
            except (TypeError, ValueError, IndexError) as error:
                if not bound.symbols:
                    raise
                raise _without_rule(journal, error) from error
        fixed = {name: size for name, size in journal.specialized.items() if isinstance(size, int)}
        if fixed:
            reasons = {name: in_words([journal.reasons[name].partition(": ")[2]])[0] for name in fixed}
            lost = not_dynamic(reasons, fixed)
            lost.scopes = () if journal.source is None else (journal.source.scope,)
            raise lost
        bound = bound.specialized(journal)
    raise _unspecialized(bound)


def _admitted(attempt: _Attempt, bound: BoundModel) -> dict[str, int]:
    """Returns sizes that the model admits, where it does not run at the examples that stand for open sizes.

    Nobody chose these examples: 2 for a batch, 64 for an image.
    """
    example = bound.example()

    def runs(fix: Mapping[str, int]) -> bool:
        with SizeJournal():
            return not bound.normalized(attempt.catalogue, {**example, **fix}, stops=True).unsupported

    if not example or runs({}):
        return {}
    of_images = [
        name
        for shape in bound.shapes.values()
        for extent in shape[1:]
        if len(shape) > 3 and isinstance(extent, Dim)
        for name in extent.symbols
    ]
    ones = [{name: 1} for name in example] + [dict.fromkeys(example, 1)]
    images = [dict.fromkeys(of_images, size) for size in IMAGE_SIZES if of_images]
    return next((fix for fix in (*ones, *images) if runs(fix)), {})


def _without_rule(journal: SizeJournal, error: Exception) -> InternalError:
    return InternalError(
        "TM9005",
        f"{journal.place or 'the conversion'} does not support symbolic sizes ({error})",
        source=journal.source,
        notes=[("help", "convert without --dynamic, and report this as a defect")],
    )


def _unspecialized(bound: BoundModel) -> InternalError:
    return InternalError("TM9004", f"the sizes {', '.join(bound.symbols)} cannot be resolved")


class _Attempt(NamedTuple):
    """Passes and lowering at given sizes; raises SizesSettled where the journal learned more of them."""

    module: TracedModule
    target: Target
    options: TargetOptions
    catalogue: Mapping[str, Op]
    pass_options: PassOptions
    overrides: IoOverrides

    def run(self, bound: BoundModel, journal: SizeJournal) -> LoweredModel:
        normalized = bound.normalized(self.catalogue)
        if found := _blocked(normalized, self.options, self.catalogue):
            from tmconvert.passes.unsupported import unsupported_error

            raise unsupported_error(found, self.options.target, context=bound.context)
        if self.module.vocabulary is not None and self.module.vocabulary.is_channels_last:
            from tmconvert.passes.image_edges import name_channels_first

            name_channels_first(normalized.graph)
        set_seed(normalized.graph, self.catalogue, self.options.seed)
        checks = self._size_checks(bound, normalized) if bound.symbols else None
        if checks is None:  # passes change the graph
            first, source = None, normalized.graph.copy()
        else:
            first = _at_example(checks, bound, journal)
            source = first.graph.copy()
        journal.in_passes = True
        manager, graph, notes = self._through_passes(normalized, source, bound)
        journal.check()
        layouts = _nhwc(normalized.graph.inputs), _nhwc(normalized.graph.outputs)
        graphs: list[InternalGraph] = [source]
        references: list[Example | None] = [None]
        guards = journal.guards
        if checks is not None and first is not None:
            from tmconvert.conversion.size_ranges import Trial, checked_sizes

            trials = [Trial(first.sizes, source, first.reference)]
            accepts = self.overrides.accept_range
            trials, guards = checked_sizes(checks, trials, bound, journal, accept_range=accepts)
            graphs = [trial.graph for trial in trials]
            references = [trial.reference for trial in trials]
        return LoweredModel(
            graphs, references, summarized(guards), normalized.graph, graph, *layouts, manager, notes
        )

    def _size_checks(self, bound: BoundModel, normalized: Normalized) -> SizeChecks:
        has_source = not self.overrides.is_cut and not self.options.bakes_weights
        from tmconvert.conversion.size_ranges import SizeChecks

        return SizeChecks(bound, self.module, normalized, self.catalogue, has_source=has_source)

    def _through_passes(
        self, normalized: Normalized, source: InternalGraph, bound: BoundModel
    ) -> tuple[PassManager, TargetGraph, list[str]]:
        """Runs passes and lowering on the normalized graph; ``source`` is the one before, at static sizes."""
        target, options, catalogue = self.target, self.options, self.catalogue
        passes = target.passes(options, catalogue)
        if self.pass_options.requested:
            from tmconvert.transform.named_passes import requested_passes, with_requested

            passes = with_requested(passes, requested_passes(self.pass_options.requested, catalogue))
        manager = PassManager(passes, catalogue, self.pass_options)
        graph, unsupported = TargetGraph(options.target, options.version, bound.flat.name), []
        try:
            manager.run(normalized.graph)
            if not manager.stopped:
                lowering = target.lower(normalized.graph, catalogue, options)
                graph, unsupported = lowering.graph, lowering.unsupported
        except Undecomposed as found:
            unsupported = [found.unsupported]
        if unsupported:
            enough = _sufficient(source, options, catalogue)
            from tmconvert.passes.unsupported import unsupported_error

            raise unsupported_error(unsupported, options.target, enough, bound.context)
        notes = normalized.notes()
        if not manager.stopped:
            finished = target.finish(graph, options)
            manager.records += finished
            notes += [note for record in manager.records for note in record.notes]
        return manager, graph, notes


def _at_example(checks: SizeChecks, bound: BoundModel, journal: SizeJournal) -> Trial:
    trial = checks.example(journal)
    if trial is None:
        journal.check()
        raise _unspecialized(bound)
    return trial


def _nhwc(nodes: Sequence[Any]) -> tuple[bool, ...]:
    return tuple(isinstance(node, TensorNode) and node.layout == "nhwc" for node in nodes)
