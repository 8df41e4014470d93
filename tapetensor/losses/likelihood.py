"""Losses that are negative log-likelihoods of numbers."""

from __future__ import annotations

import math
from typing import Any, Literal, overload

from tapetensor.arguments import as_flag, as_number
from tapetensor.kernels import losses
from tapetensor.losses.checks import as_reduction, check_alike, check_between, check_pair
from tapetensor.tensor.apply import apply
from tapetensor.tensor.tensor import Joins, Tensor, Tensor0D
from tapetensor.typing import F, S, T


@overload
def gaussian_nll(
    prediction: Tensor[S, T, F],
    target: Joins[S, T, F],
    variance: Joins[S, T, F],
    *,
    full: bool = False,
    eps: float = 1e-6,
    reduction: Literal["mean", "sum"] = "mean",
) -> Tensor0D[T, F]: ...
@overload
def gaussian_nll(
    prediction: Tensor[S, T, F],
    target: Joins[S, T, F],
    variance: Joins[S, T, F],
    *,
    full: bool = False,
    eps: float = 1e-6,
    reduction: Literal["none"],
) -> Tensor[S, T, F]: ...
def gaussian_nll(
    prediction: Tensor[Any, Any, Any],
    target: Tensor[Any, Any, Any],
    variance: Tensor[Any, Any, Any],
    *,
    full: bool = False,
    eps: float = 1e-6,
    reduction: Literal["mean", "sum", "none"] = "mean",
) -> Tensor[Any, Any, Any]:
    """Return the negative log-likelihood of numbers by normal distributions.

        mean((log(v) + (prediction - target)**2 / v) / 2),  v = max(variance, eps)

    Shape: ``S, S, S -> ()``; ``S`` with ``reduction="none"``.
    Derivative: ``(prediction - target) / v / n`` for `prediction`, for `n` elements, and
        ``(v - (prediction - target)**2) / (2 * v**2) / n`` for `variance`, below `eps`, too, as
        PyTorch's; for `target` minus that for `prediction`.

    Args:
        prediction: the means.
        target: what was seen, of the same shape and dtype.
        variance: the variances, >= 0: a plain value, or one that owns a tape, too.
        full: whether the constant ``log(2 * pi) / 2`` is added.
        eps: what the variances count at least, > 0.
        reduction: "mean", "sum", or "none" for the error of each element.

    Raises:
        ShapeError: if the shapes differ, or there are no elements.
        DTypeError: if the dtypes differ or are not floating.
        ArgumentValueError: if a variance is below 0, or `eps` or `reduction` is out of range.
        ArgumentTypeError: if an argument is of the wrong kind.

    Source: Nix & Weigend (1994), "Estimating the mean and variance of the target probability
        distribution".

    >>> import tapetensor as tt
    >>> gaussian_nll(tt.zeros((2,)), tt.full((2,), 2.0), tt.ones((2,)))
    Tensor(2., shape=(), dtype=float32, NoneTape)
    """
    op = "gaussian_nll"
    check_pair(op, prediction, target)
    check_alike(op, {"prediction": prediction, "variance": variance})
    least = as_number(op, "eps", eps, above=0)
    check_between(op, variance, "variance", 0, math.inf)
    options = (as_flag(op, "full", full), least, as_reduction(op, reduction))
    return apply(losses.gaussian_nll, (prediction, target, variance), options)


@overload
def poisson_nll(
    log_rates: Tensor[S, T, F],
    counts: Joins[S, T, F],
    *,
    log_input: bool = True,
    full: bool = False,
    reduction: Literal["mean", "sum"] = "mean",
) -> Tensor0D[T, F]: ...
@overload
def poisson_nll(
    log_rates: Tensor[S, T, F],
    counts: Joins[S, T, F],
    *,
    log_input: bool = True,
    full: bool = False,
    reduction: Literal["none"],
) -> Tensor[S, T, F]: ...
def poisson_nll(
    log_rates: Tensor[Any, Any, Any],
    counts: Tensor[Any, Any, Any],
    *,
    log_input: bool = True,
    full: bool = False,
    reduction: Literal["mean", "sum", "none"] = "mean",
) -> Tensor[Any, Any, Any]:
    """Return the negative log-likelihood of counts by Poisson distributions.

        mean(exp(log_rate) - count * log_rate),  or with log_input=False
        mean(rate - count * log(rate + 1e-8))

    Shape: ``S, S -> ()``; ``S`` with ``reduction="none"``.
    Derivative: ``(exp(log_rate) - count) / n`` for `n` elements, or
        ``(1 - count / (rate + 1e-8)) / n``; for `counts` minus the logarithm of the rate over `n`,
        and with `full` the slope of the approximation.

    Args:
        log_rates: natural logarithms of the expected counts, or these themselves, >= 0.
        counts: what was counted, plain numbers of the same shape and dtype.
        log_input: whether `log_rates` are logarithms.
        full: whether ``log(count!)`` is added, by Stirling's approximation, 0 up to a count of 1.
        reduction: "mean", "sum", or "none" for the error of each element.

    Raises:
        ShapeError: if the shapes differ, or there are no elements.
        DTypeError: if the dtypes differ or are not floating.
        ArgumentValueError: if a rate that is no logarithm is below 0, or `reduction` is none of the
            three.
        ArgumentTypeError: if an argument is of the wrong kind.

    Source: Nelder & Wedderburn (1972), "Generalized linear models".

    >>> import tapetensor as tt
    >>> poisson_nll(tt.zeros((2,)), tt.ones((2,)))
    Tensor(1., shape=(), dtype=float32, NoneTape)
    """
    op = "poisson_nll"
    check_pair(op, log_rates, counts, "log_rates", "counts")
    is_log, is_full = as_flag(op, "log_input", log_input), as_flag(op, "full", full)
    options = is_log, is_full, as_reduction(op, reduction)
    if not is_log:
        check_between(op, log_rates, "a rate that is no logarithm", 0, math.inf)
    return apply(losses.poisson_nll, (log_rates, counts), options)
