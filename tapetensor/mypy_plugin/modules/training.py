"""Gradients that reach no parameter, where the statements of a file say so without being followed.

======================================  ==========================================================
``of_critic.step(grads_of_generator)``  an optimizer is given the gradients by something else
``of_critic.step(loss.backward())``     the loss is computed with other models, and with no other
``backward(wrt=tt.zeros(...))``         a tensor that was just made took no part in the loss
``for p in ...: p -= lr * grads[p]``    the name of the loop is given a tensor that nobody reads
``GradientContext()``                   a context that nothing can enter
======================================  ==========================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy import nodes
from mypy.plugin import FunctionContext, MethodContext
from mypy.types import Instance, Type, get_proper_type

from tapetensor.mypy_plugin import reporting
from tapetensor.mypy_plugin.modules.classes import derives, kinds_of_fields
from tapetensor.mypy_plugin.names import (
    BUILD,
    CREATED,
    OPERATORS,
    TENSOR_ROOMS,
    member_of,
    type_of_field,
)
from tapetensor.mypy_plugin.reading import bounded, class_of, is_plain, read_tensor
from tapetensor.mypy_plugin.reporting import MODULE_GRADIENT, checker_of
from tapetensor.mypy_plugin.statements import Assignments, assignments_of

_LIBRARY: Final = "tapetensor."
_CONTEXT: Final = "tapetensor.tape.context.GradientContext"
_PLAIN: Final = ("builtins.int", "builtins.float", "builtins.bool", "builtins.str", "numpy.")
_OPTIMIZER: Final = "tapetensor.optim.optimizer.Optimizer"


def method_result(fullname: str) -> Callable[[MethodContext], Type] | None:
    """Answer for a step of an optimizer, a backward pass, an operator of tensors."""
    owner, _, name = fullname.rpartition(".")
    if name == "step" and derives(owner, _OPTIMIZER):
        return check_step
    if not fullname.startswith(TENSOR_ROOMS):
        return None
    if name == "backward":
        return check_wanted
    return check_augmented if name.strip("_") in OPERATORS else None


def function_result(fullname: str) -> Callable[[FunctionContext], Type] | None:
    """Answer for the constructor of `GradientContext`."""
    return check_entered if fullname == _CONTEXT else None


def check_step(context: MethodContext) -> Type:
    """Report an optimizer that is given the gradients by what it does not train."""
    match context.context:
        case nodes.CallExpr(callee=nodes.MemberExpr(expr=receiver), args=[given]):
            known = assignments_of(checker_of(context).tree)
            made, passed = known.value(receiver), known.value(given)
            owner = get_proper_type(context.type)
            kind = owner.type.name if isinstance(owner, Instance) else ""
            match made:
                case nodes.CallExpr(args=[trained, *_], arg_names=[None | "model", *_]):
                    complaint = _complaint(trained, passed, known)
                    if complaint is not None:
                        message = f"{kind}.step: {complaint} {kind} was made for"
                        reporting.fail(context, message, MODULE_GRADIENT)
    return context.default_return_type


def check_wanted(context: MethodContext) -> Type:
    """Report a tensor that is made where the gradient by it is asked for."""
    found = context.context
    wanted = _wanted(found) if isinstance(found, nodes.CallExpr) else None
    if isinstance(wanted, nodes.CallExpr) and _is_created(wanted):
        reporting.fail(
            context,
            "backward: wrt is a tensor that is made here, so that the loss cannot depend on it; "
            "give the tensor a name, compute the loss with it, and ask for it by that name",
            MODULE_GRADIENT,
            wanted,
        )
    return context.default_return_type


def check_augmented(context: MethodContext) -> Type:
    """Report a loop that gives its own name a new tensor, which nobody reads."""
    found = context.context
    if isinstance(found, nodes.OpExpr) and isinstance(found.left, nodes.NameExpr):
        statement = assignments_of(checker_of(context).tree).in_vain.get(found.left)
        if statement is not None:
            name, op = found.left.name, statement.op
            reporting.fail(
                context,
                f'"{name} {op}= ..." gives the name of the loop a new tensor, which nobody reads: '
                "what the loop goes over stays as it is; an optimizer changes parameters: "
                "optim.Sgd(model, lr=...).step(grads)",
                MODULE_GRADIENT,
            )
    return context.default_return_type


def check_entered(context: FunctionContext) -> Type:
    """Report a context that nothing can enter, for nobody reads the name it is given."""
    if assignments_of(checker_of(context).tree).is_dropped(context.context):
        reporting.fail(
            context,
            "GradientContext: this one is never entered, so no tape belongs to it; write "
            "`with tt.GradientContext():` around what it is for",
            MODULE_GRADIENT,
        )
    return context.default_return_type


def _complaint(
    trained: nodes.Expression, passed: nodes.Expression, known: Assignments
) -> str | None:
    """Return why none, or not all, of what is trained gets a gradient; None if it may."""
    of_optimizer = _parts(trained, known)
    match passed:
        case nodes.CallExpr(callee=nodes.MemberExpr(name="backward", expr=loss)):
            asked = _wanted(passed)
        case _:
            return None
    if asked is None:
        behind = _behind(loss, known) if not passed.args else None
        if of_optimizer and behind and not of_optimizer & behind:
            names = sorted([f'"{one.name}"' for one in behind])
            return (
                f"this loss is computed with {' and '.join(names)}, and with none of what "
                "it updates; give step() the gradients of a loss that uses what"
            )
        return None
    of_pass = _parts(asked, known)
    by, cure = f"these are the gradients by {_spelled(asked)}", "write backward(wrt=...) with what"
    if of_optimizer and of_pass and not of_optimizer & of_pass:
        return f"{by}, and none of what it updates is among them; {cure}"
    match asked, trained:
        case (
            nodes.MemberExpr(expr=nodes.NameExpr(node=owner), name=part),
            nodes.NameExpr(node=nodes.Var(type=declared) as model),
        ) if owner is model:
            info = class_of(declared)
            if info is not None and _trains_more_than(info, part):
                return f"{by}, a part only of {_spelled(trained)}, all of which it updates; {cure}"
    return None


def _behind(found: nodes.Expression, known: Assignments) -> set[nodes.SymbolNode] | None:
    """Return the models and tensors made in sight that a value is computed with.

    None where others may be among them: behind a function, a name that is assigned twice, an input
    that brings a tape.
    """
    inner: list[nodes.Expression] = []
    match found:
        case nodes.IntExpr() | nodes.FloatExpr() | nodes.StrExpr():
            pass
        case nodes.NameExpr(node=nodes.Var(type=declared)) if known.value(found) is found:
            tensor = read_tensor(declared)
            return None if tensor is None or not is_plain(tensor.tape) else set()
        case nodes.NameExpr():
            own = _parts(found, known)
            return own or _behind(known.value(found), known)
        case nodes.OpExpr(left=left, right=right):
            inner = [left, right]
        case nodes.UnaryExpr(expr=one) | nodes.IndexExpr(base=one) | nodes.MemberExpr(expr=one):
            inner = [one]
        case nodes.CallExpr(callee=nodes.RefExpr(fullname=name), args=args) if name.startswith(
            _LIBRARY
        ):
            inner = args
        case nodes.CallExpr(callee=nodes.MemberExpr(expr=owner), args=args):
            inner = [owner, *args]
        case _:
            return None
    each = [_behind(one, known) for one in inner]
    return None if None in each else {one for some in each if some is not None for one in some}


def _parts(found: nodes.Expression, known: Assignments) -> set[nodes.SymbolNode]:
    """Return the variables that hold models and tensors made in sight; none if others may too."""
    parts: set[nodes.SymbolNode] = set()
    for item in found.items if isinstance(found, nodes.ListExpr | nodes.TupleExpr) else [found]:
        node = item.node if isinstance(item, nodes.NameExpr) else None
        made = known.value(item)
        if node is None or not _is_made_alone(made) or known.is_changed(node):
            return set()
        parts.add(node)
    return parts


def _is_made_alone(made: nodes.Expression) -> bool:
    """Tell whether a call makes a tensor, or a model that is made of no other one."""
    if not isinstance(made, nodes.CallExpr) or not isinstance(made.callee, nodes.RefExpr):
        return False
    first = made.args[0] if made.callee.fullname == BUILD and made.args else made.callee
    is_class = isinstance(first, nodes.RefExpr) and isinstance(first.node, nodes.TypeInfo)
    others = made.args[1:] if first is not made.callee else made.args
    return _is_created(made) or (is_class and all(map(_is_plain, others)))


def _is_plain(argument: nodes.Expression) -> bool:
    """Tell whether an argument is a number or a generator, and no model or tensor."""
    match argument:
        case nodes.IntExpr() | nodes.FloatExpr() | nodes.StrExpr():
            return True
        case nodes.CallExpr(callee=nodes.RefExpr(fullname=name)):
            return name.startswith("numpy.")
        case nodes.RefExpr(node=nodes.Var(type=declared)):
            kind = bounded(declared)
            return isinstance(kind, Instance) and kind.type.fullname.startswith(_PLAIN)
    return False


def _is_created(made: nodes.CallExpr) -> bool:
    return isinstance(made.callee, nodes.RefExpr) and made.callee.fullname.startswith(CREATED)


def _wanted(backward: nodes.CallExpr) -> nodes.Expression | None:
    """Return what a backward pass is asked for by `wrt`."""
    return dict(zip(backward.arg_names, backward.args, strict=True)).get("wrt")


def _trains_more_than(info: nodes.TypeInfo, part: str) -> bool:
    """Tell whether a class has another parameter than a field, or another layer with a weight."""
    for name, (kind, _) in (kinds_of_fields(info) or {}).items():
        layer = class_of(type_of_field(info, name))
        has_weight = layer is not None and member_of(layer, "weight") is not None
        if name != part and (kind == "parameter" or (has_weight and kind != "default")):
            return True
    return False


def _spelled(found: nodes.Expression) -> str:
    match found:
        case nodes.NameExpr(name=name):
            return f'"{name}"'
        case nodes.MemberExpr(expr=nodes.NameExpr(name=owner), name=name):
            return f'"{owner}.{name}"'
    return "other tensors"
