"""The source of a loop of numbers that runs a group, row by row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container
from dataclasses import dataclass, field, replace

import numpy as np

from tapetensor.compiler.emit.code import indented
from tapetensor.compiler.plan.groups import Group
from tapetensor.compiler.trace.node import DType, Kind, Node
from tapetensor.compiler.trace.operations import cast_to, select
from tapetensor.native.expressions import TYPES, cast, formula_of, literal, of_ufunc
from tapetensor.native.layout import Form, Layout, Seen, Total

_SEARCHES = {np.maximum: "highest", np.minimum: "lowest"}


@dataclass(eq=False)
class Parameter:
    """An array that the loop is given.

    Args:
        name: what the source calls it.
        node: whose array it is; for a total the array takes that of each share of the rows.
        seen: how the loop sees it.
    """

    name: str
    node: Node
    seen: Seen


@dataclass(eq=False)
class _Value:
    """A number that is computed in every turn of a loop over rows or over a row's elements.

    Args:
        name: its variable.
        width: the variable of how many elements of a row there are; empty for one number a row.
        stage: in which of the loops over the elements of one row it is computed. A number for a
            row is computed before the loops of its stage.
        node: the node whose value it is.
    """

    name: str
    width: str
    stage: int
    node: Node


@dataclass(eq=False)
class _Pass:
    """A loop over the elements of a row."""

    loads: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    stores: list[str] = field(default_factory=list)

    def counts(self) -> tuple[int, int]:
        """Return how many arrays are written to, and how many others are read."""
        written = {line.partition("[")[0] for line in self.stores}
        places = [line.partition(" = ")[2] for line in self.loads.values()]
        read = {place.partition("[")[0] for place in places} - written
        return len(written), len(read)


class Loop:
    """Writes the loop.

    Args:
        group: what is to be run; it is known what of it is kept.
        layout: how its arrays are seen.
        over: for each kept step that is written over an operand, that operand.
        apart: the operands whose rows do not lie end to end.

    Attributes:
        inputs: the arrays that are read.
        outputs: those that steps are written to, but for those that are written over an input.
        totals: those that totals are written to, one for each share of the rows.
    """

    def __init__(
        self, group: Group, layout: Layout, over: dict[Node, Node], apart: Container[Node]
    ) -> None:
        self._group = group
        self._layout = layout
        self._over = over
        self._apart = apart
        self.inputs: dict[Node, Parameter] = {}
        self.outputs: dict[Node, Parameter] = {}
        self.totals: dict[Node, Parameter] = {}
        self._seen: dict[tuple[Node, Seen], Parameter] = {}
        self._values: dict[Node, _Value] = {}
        # The stage in which an array is last read.
        self._read: dict[Node, int] = {}
        self._widths: dict[int, str] = {}
        self._first: list[str] = []
        self._start: list[str] = []
        # What is done once a row, before the loops of each stage.
        self._heads: defaultdict[int, list[str]] = defaultdict(list)
        # The loops of each stage, by the variable of how many elements they run over.
        self._passes: defaultdict[tuple[int, str], _Pass] = defaultdict(_Pass)
        self._end: list[str] = []
        self._buffers: set[str] = set()
        self._is_flat = len(layout.lead) == layout.rank
        self._count = 0

    def source(self) -> str:
        """Return the source of ``loop(first, last, step, rows, ...)``, for shares of the rows."""
        for node in self._group.nodes:
            if node.kind is Kind.VIEW:
                self._values[node] = self._values[node.args[0]]
            elif node.kind is Kind.REDUCE:
                self._reduce(node)
            else:
                self._compute(node)
        starts = [f"{one.name}_starts" for one in self.arrays() if one.seen.is_apart]
        arrays = [one.name for one in self.parameters()]
        names = ["first", "last", "step", "rows", *starts, *arrays]
        # Of an index that begins at 0 it is known that it does not count from the end.
        cuts = [
            f"{one.name}_cut = {one.name}[begin:end]"
            for one in self.arrays()
            if one.seen.form in (Form.ROW, Form.WIDE)
            and one.seen.row == "i"
            and not one.seen.is_apart
        ]
        widths = [f"{name} = {self._width_source(size)}" for size, name in self._widths.items()]
        lines = [
            f"def loop({', '.join(names)}):",
            *indented([*widths, *self._first]),
            "    for share in range(first, last):",
            "        begin = share * step",
            "        end = min(begin + step, rows)",
            *indented([*cuts, *self._start], 2),
            "        for i in range(end - begin):",
            *indented(self._body(), 3),
            *indented(self._end, 2),
        ]
        return "\n".join(lines) + "\n"

    def parameters(self) -> list[Parameter]:
        """Return what the loop is given, in order, behind four numbers and the starts of rows."""
        return [*self.arrays(), *self.totals.values()]

    def arrays(self) -> list[Parameter]:
        """Return those of the parameters that are no totals."""
        return [*self._seen.values(), *self.outputs.values()]

    def longest_row(self) -> int:
        """Return how many elements the longest row has."""
        return max([1, *self._widths])

    def comparisons(self) -> int:
        """Return of how many pairs of arrays LLVM asks whether they overlap, in one of the loops.

        The source has been written.
        """
        counts = [one.counts() for one in self._passes.values()]
        if self._is_flat:
            read = sum([one.seen.form is Form.ROW for one in self._seen.values()])
            over = len(self._over)
            counts = [(len(self.outputs) + over, read - over)]
        pairs = [written * (written - 1) // 2 + written * read for written, read in counts]
        return max(pairs, default=0)

    def _body(self) -> list[str]:
        lines: list[str] = []
        last = max([0, *self._heads, *[stage for stage, _ in self._passes]])
        for stage in range(last + 1):
            lines += self._heads[stage]
            for (at, width), one in self._passes.items():
                if at == stage:
                    lines.append(f"for j in range({width}):")
                    lines += indented([*one.loads.values(), *one.lines, *one.stores])
        return lines or ["pass"]

    def _compute(self, node: Node) -> None:
        """Write an elementwise step."""
        dtype = node.dtype
        width = self._width_of(node)
        stage = self._stage(node, node.parents())
        value = _Value(self._name(), width, stage, node)
        operands = [(self._operand(one, node, value), one.dtype) for one in node.args]
        if node.function is select:
            (mask, kind), *sides = operands
            chosen = [cast(source, old, dtype) for source, old in sides]
            source = f"choose({cast(mask, kind, np.dtype(np.bool_))}, {', '.join(chosen)})"
        elif node.function is cast_to(dtype):
            source = cast(*operands[0], dtype)
        elif isinstance(node.function, np.ufunc):
            source = _known(of_ufunc(node.function, operands))
        else:
            formula = formula_of(node.function, len(operands), dtype)
            assert formula is not None
            sources = dict(zip(formula, operands, strict=False))
            for part in formula[len(operands) :]:
                taken = [
                    sources.get(one) or (literal(one.detail, one.dtype), one.dtype)
                    for one in part.args
                ]
                sources[part] = self._name(), part.dtype
                self._line(value, f"{sources[part][0]} = {_known(of_ufunc(part.function, taken))}")
            source, _ = sources[formula[-1]]
        self._line(value, f"{value.name} = {source}")
        self._keep(node, value)

    def _reduce(self, node: Node) -> None:
        """Write a reduction."""
        total = self._layout.total(node)
        assert total is not None
        stage = self._stage(node, node.parents())
        width = self._width_of(node.args[0])
        inside = _Value("", width, stage, node)
        # A row of one element is reduced at once.
        behind = stage + 1 if width else stage
        operands = [
            cast(self._operand(one, node, inside), one.dtype, node.dtype) for one in node.args
        ]
        taken = " * ".join(operands)
        if total is Total.COLUMNS:
            self._take_columns(node, inside, taken)
            return
        accumulator = self._name()
        start, take, result = _accumulation(node, accumulator, taken)
        if total is Total.ROW:
            value = _Value(self._name(), "", behind, node)
            self._heads[stage].append(start)
            self._line(inside, take)
            self._line(value, f"{value.name} = {result}")
            self._keep(node, value)
            return
        name = self._total(node, (1,))
        if self._is_flat:
            self._start.append(start)
            self._line(inside, take)
            self._end.append(f"{name}[share] = {result}")
            return
        # A row is summed in its own dtype, and the sums of rows in float64.
        outer = self._name()
        wide = np.dtype(np.float64) if node.dtype.kind == "f" else node.dtype
        row = cast(result, node.dtype, wide)
        self._heads[stage].append(start)
        self._line(inside, take)
        outer_start, outer_take, outer_result = _accumulation(node, outer, row, wide)
        self._start.append(outer_start)
        self._heads[behind].append(outer_take)
        self._end.append(f"{name}[share] = {cast(outer_result, wide, node.dtype)}")

    def _take_columns(self, node: Node, inside: _Value, taken: str) -> None:
        name = self._total(node, (1, node.size))
        start = literal(self._group.totals[node], node.dtype)
        self._start += [f"for j in range({inside.width}):", f"    {name}[share, j] = {start}"]
        place = f"{name}[share, j]"
        operand = (taken, node.dtype)
        source = _known(of_ufunc(node.function, [(place, node.dtype), operand]))
        one = self._passes[inside.stage, inside.width]
        one.stores.append(f"{place} = {source}")

    def _total(self, node: Node, shape: tuple[int, ...]) -> str:
        name = f"t{len(self.totals)}"
        form = Form.ROW if shape == (1,) else Form.WIDE
        self.totals[node] = Parameter(name, node, Seen(form, shape))
        return name

    def _stage(self, node: Node, parents: tuple[Node, ...]) -> int:
        """Return the first stage in which a step can be computed."""
        stage = 0
        for parent in parents:
            value = self._values.get(parent)
            if value is not None:
                stage = max(stage, value.stage)
        over = self._over.get(node)
        if over is not None:
            # Nobody reads what is written over in a later stage.
            stage = max(stage, self._read.get(over, 0))
        for parent in parents:
            if parent not in self._values:
                self._read[parent] = max(stage, self._read.get(parent, 0))
        return stage

    def _operand(self, operand: Node, reader: Node, value: _Value) -> str:
        """Return the expression of an operand where a value is computed."""
        known = self._values.get(operand)
        if known is None:
            return self._load(operand, reader, value)
        if not known.width or (known.stage == value.stage and known.width == value.width):
            return known.name
        one = self._passes[value.stage, value.width]
        one.loads[known.name] = f"{known.name} = {self._place_between(known)}"
        return known.name

    def _place_between(self, value: _Value) -> str:
        """Return where the value of a row lies until a later stage reads it."""
        if value.node in self.outputs or value.node in self._over:
            return self._target(value.node)
        name = f"b{value.name}"
        if name not in self._buffers:
            self._buffers.add(name)
            kind = TYPES[value.node.dtype]
            self._first.append(f"{name} = np.empty({value.width}, {kind})")
            self._passes[value.stage, value.width].stores.append(f"{name}[j] = {value.name}")
        return f"{name}[j]"

    def _load(self, operand: Node, reader: Node, value: _Value) -> str:
        """Return the expression of an operand that comes from outside."""
        if operand.kind is Kind.CONSTANT and operand.shape == () and _is_common(operand):
            return literal(operand.detail, operand.dtype)
        seen = self._layout.see(operand, reader)
        assert seen is not None
        if operand.kind is Kind.CONSTANT and not any(operand.detail.strides):
            # A number that is repeated, as the cotangent of a mean is.
            seen = Seen(Form.SCALAR, ())
        elif operand in self._apart:
            seen = replace(seen, is_apart=True)
        parameter = self._seen.get((operand, seen))
        if parameter is None:
            name = f"a{len(self._seen)}"
            parameter = self._seen[operand, seen] = Parameter(name, operand, seen)
            self.inputs[operand] = parameter
            if seen.form is Form.SCALAR:
                self._first.append(f"{name}_ = {name}[()]")
            elif seen.is_apart:
                start = f"{name}_starts[begin + i]"
                self._heads[0].append(f"{name}_cut = {name}[{start}:{start} + {value.width}]")
            elif seen.row != "i":
                row = seen.row.replace("own", f"{name}.shape[0]")
                self._heads[0].append(f"{name}_i = {row}")
            if seen.form is Form.ROW:
                self._heads[0].append(f"{name}_ = {_row_of(parameter)}]")
        name = parameter.name
        if seen.is_apart:
            place = f"{name}_cut[j]"
        elif seen.form is Form.WIDE:
            place = f"{_row_of(parameter)}, j]"
        else:
            place = f"{name}[j]"
        if seen.form in (Form.WIDE, Form.COMMON):
            self._passes[value.stage, value.width].loads[name] = f"{name}_ = {place}"
        return f"{name}_"

    def _keep(self, node: Node, value: _Value) -> None:
        """Write the store of a value that is read outside."""
        self._values[node] = value
        if node not in self._group.kept:
            return
        if node not in self._over:
            seen = self._layout.see(node, node)
            assert seen is not None
            self.outputs[node] = Parameter(f"o{len(self.outputs)}", node, seen)
        store = f"{self._target(node)} = {value.name}"
        if value.width:
            self._passes[value.stage, value.width].stores.append(store)
        else:
            self._heads[value.stage].append(store)

    def _target(self, node: Node) -> str:
        over = self._over.get(node)
        parameter = self.outputs[node] if over is None else self.inputs[over]
        is_wide = parameter.seen.form is Form.WIDE
        return f"{_row_of(parameter)}, j]" if is_wide else f"{_row_of(parameter)}]"

    def _width_of(self, node: Node) -> str:
        """Return the variable of the elements in a row of a step; empty for one."""
        seen = self._layout.see(node, node)
        assert seen is not None
        if seen.form is not Form.WIDE:
            return ""
        width = seen.shape[1]
        if width not in self._widths:
            self._widths[width] = f"w{len(self._widths)}"
        return self._widths[width]

    def _width_source(self, width: int) -> str:
        for one in self.parameters():
            is_row = one.seen.form in (Form.WIDE, Form.COMMON) and not one.seen.is_apart
            if is_row and one.seen.shape[-1] == width:
                return f"{one.name}.shape[{len(one.seen.shape) - 1}]"
        # All that have such rows lie apart.
        return str(width)

    def _line(self, value: _Value, line: str) -> None:
        if value.width:
            self._passes[value.stage, value.width].lines.append(line)
        else:
            self._heads[value.stage].append(line)

    def _name(self) -> str:
        self._count += 1
        return f"v{self._count}"


def _row_of(parameter: Parameter) -> str:
    """Return the beginning of the expression of an element of an array, with its row."""
    name = parameter.name
    return f"{name}_cut[i" if parameter.seen.row == "i" else f"{name}[{name}_i"


def _accumulation(
    node: Node, name: str, taken: str, dtype: DType | None = None
) -> tuple[str, str, str]:
    """Return how a reduction starts, takes an element, and what it gives."""
    dtype = node.dtype if dtype is None else dtype
    kind = TYPES[dtype]
    if node.function in _SEARCHES:
        # Of keys a NaN has the best, so that it comes out.
        better = _SEARCHES[node.function]
        key = f"{better}_key_{kind}({taken})"
        return (
            f"{name} = {better}_start_{kind}",
            f"{name} = {better}({name}, {key})",
            f"from_key_{kind}({name})",
        )
    if node.function in (np.logical_and, np.logical_or):
        is_all = node.function is np.logical_and
        return f"{name} = {is_all}", f"{name} = {name} {'&' if is_all else '|'} {taken}", name
    take, start = ("times", 1) if node.function is np.multiply else ("plus", 0)
    return f"{name} = {kind}({start})", f"{name} = {take}({name}, {kind}({taken}))", name


def _is_common(constant: Node) -> bool:
    """Tell whether a number stands in the source: few others do, which depend on shapes."""
    return constant.dtype.kind != "f" or abs(float(constant.detail)) in (0.0, 0.5, 1.0, 2.0)


def _known(found: tuple[str, DType] | None) -> str:
    assert found is not None
    return found[0]
