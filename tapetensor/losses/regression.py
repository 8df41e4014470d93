"""Losses of numbers that should be other numbers, negative log-likelihoods among them."""

from __future__ import annotations

import math
from typing import Any, Literal, overload

from tapetensor.arguments import as_flag, as_number
from tapetensor.kernels import losses
from tapetensor.losses.checks import as_reduction, check_alike, check_between
from tapetensor.tensor.apply import apply
from tapetensor.tensor.tensor import Joins, Tensor, Tensor0D
from tapetensor.typing import F, S, T


@overload
def mse(
    prediction: Tensor[S, T, F],
    target: Joins[S, T, F],
    *,
    reduction: Literal["mean", "sum"] = "mean",
) -> Tensor0D[T, F]: ...
@overload
def mse(
    prediction: Tensor[S, T, F],
    target: Joins[S, T, F],
    *,
    reduction: Literal["none"],
) -> Tensor[S, T, F]: ...
def mse(
    prediction: Tensor[Any, Any, Any],
    target: Tensor[Any, Any, Any],
    *,
    reduction: Literal["mean", "sum", "none"] = "mean",
) -> Tensor[Any, Any, Any]:
    """Return the mean squared error.

        mean((prediction - target)**2)

    Shape: ``S, S -> ()``; ``S`` with ``reduction="none"``.
    Derivative: ``2 * (prediction - target) / n`` for `n` elements; minus that for `target`.

    Args:
        prediction: the output of the model.
        target: the right output, of the same shape and dtype.
        reduction: "mean", "sum", or "none" for the error of each element.

    Raises:
        ShapeError: if the shapes differ, or there are no elements.
        DTypeError: if the dtypes differ or are not floating.
        ArgumentValueError: if `reduction` is not one of the three.

    >>> import tapetensor as tt
    >>> mse(tt.from_numpy([1.0, 4.0], shape=(2,)), tt.from_numpy([1.0, 2.0], shape=(2,)))
    Tensor(2., shape=(), dtype=float32, NoneTape)
    """
    check_alike("mse", prediction=prediction, target=target)
    return apply(losses.mse, (prediction, target), (as_reduction("mse", reduction),))


def rmse(prediction: Tensor[S, T, F], target: Joins[S, T, F]) -> Tensor0D[T, F]:
    """Return the root of the mean squared error, in the unit of the target.

        sqrt(mean((prediction - target)**2))

    Shape: ``S, S -> ()``.
    Derivative: ``(prediction - target) / (n * rmse)`` for `n` elements, 0 where all are equal;
        minus that for `target`.

    Args:
        prediction: the output of the model.
        target: the right output, of the same shape and dtype.

    Raises:
        ShapeError: if the shapes differ, or there are no elements.
        DTypeError: if the dtypes differ or are not floating.

    >>> import tapetensor as tt
    >>> rmse(tt.from_numpy([3.0, 4.0], shape=(2,)), tt.from_numpy([2.0, 5.0], shape=(2,)))
    Tensor(1., shape=(), dtype=float32, NoneTape)
    """
    check_alike("rmse", prediction=prediction, target=target)
    return apply(losses.rmse, (prediction, target))


@overload
def mae(
    prediction: Tensor[S, T, F],
    target: Joins[S, T, F],
    *,
    reduction: Literal["mean", "sum"] = "mean",
) -> Tensor0D[T, F]: ...
@overload
def mae(
    prediction: Tensor[S, T, F],
    target: Joins[S, T, F],
    *,
    reduction: Literal["none"],
) -> Tensor[S, T, F]: ...
def mae(
    prediction: Tensor[Any, Any, Any],
    target: Tensor[Any, Any, Any],
    *,
    reduction: Literal["mean", "sum", "none"] = "mean",
) -> Tensor[Any, Any, Any]:
    """Return the mean absolute error.

        mean(abs(prediction - target))

    Shape: ``S, S -> ()``; ``S`` with ``reduction="none"``.
    Derivative: ``sign(prediction - target) / n`` for `n` elements, 0 where the two are equal;
        minus that for `target`.

    Args:
        prediction: the output of the model.
        target: the right output, of the same shape and dtype.
        reduction: "mean", "sum", or "none" for the error of each element.

    Raises:
        ShapeError: if the shapes differ, or there are no elements.
        DTypeError: if the dtypes differ or are not floating.
        ArgumentValueError: if `reduction` is not one of the three.

    >>> import tapetensor as tt
    >>> mae(tt.from_numpy([1.0, 4.0], shape=(2,)), tt.from_numpy([1.0, 2.0], shape=(2,)))
    Tensor(1., shape=(), dtype=float32, NoneTape)
    """
    check_alike("mae", prediction=prediction, target=target)
    return apply(losses.mae, (prediction, target), (as_reduction("mae", reduction),))


@overload
def huber(
    prediction: Tensor[S, T, F],
    target: Joins[S, T, F],
    delta: float = 1.0,
    *,
    reduction: Literal["mean", "sum"] = "mean",
) -> Tensor0D[T, F]: ...
@overload
def huber(
    prediction: Tensor[S, T, F],
    target: Joins[S, T, F],
    delta: float = 1.0,
    *,
    reduction: Literal["none"],
) -> Tensor[S, T, F]: ...
def huber(
    prediction: Tensor[Any, Any, Any],
    target: Tensor[Any, Any, Any],
    delta: float = 1.0,
    *,
    reduction: Literal["mean", "sum", "none"] = "mean",
) -> Tensor[Any, Any, Any]:
    """Return the Huber loss: squared for small errors, linear for large ones.

        mean(d**2 / 2 where abs(d) <= delta else delta * (abs(d) - delta / 2)),
        d = prediction - target

    Shape: ``S, S -> ()``; ``S`` with ``reduction="none"``.
    Derivative: ``clip(d, -delta, delta) / n`` for `n` elements, the same from both sides where
        ``abs(d) == delta``; minus that for `target`.

    Args:
        prediction: the output of the model.
        target: the right output, of the same shape and dtype.
        delta: where the loss turns linear, > 0 and finite.
        reduction: "mean", "sum", or "none" for the error of each element.

    Raises:
        ShapeError: if the shapes differ, or there are no elements.
        DTypeError: if the dtypes differ or are not floating.
        ArgumentValueError: if `delta` is not positive and finite.
        ArgumentTypeError: if `delta` is not a number.

    Source: Huber (1964), "Robust estimation of a location parameter".

    >>> import tapetensor as tt
    >>> huber(tt.from_numpy([1.0, 5.0], shape=(2,)), tt.from_numpy([0.0, 2.0], shape=(2,)))
    Tensor(1.5, shape=(), dtype=float32, NoneTape)
    """
    threshold = as_number("huber", "delta", delta, above=0)
    check_alike("huber", prediction=prediction, target=target)
    options = threshold, as_reduction("huber", reduction)
    return apply(losses.huber, (prediction, target), options)


@overload
def smooth_l1(
    prediction: Tensor[S, T, F],
    target: Joins[S, T, F],
    beta: float = 1.0,
    *,
    reduction: Literal["mean", "sum"] = "mean",
) -> Tensor0D[T, F]: ...
@overload
def smooth_l1(
    prediction: Tensor[S, T, F],
    target: Joins[S, T, F],
    beta: float = 1.0,
    *,
    reduction: Literal["none"],
) -> Tensor[S, T, F]: ...
def smooth_l1(
    prediction: Tensor[Any, Any, Any],
    target: Tensor[Any, Any, Any],
    beta: float = 1.0,
    *,
    reduction: Literal["mean", "sum", "none"] = "mean",
) -> Tensor[Any, Any, Any]:
    """Return the smooth L1 loss: `huber` over `beta`, whose linear part has slope 1.

        mean(d**2 / (2 * beta) where abs(d) <= beta else abs(d) - beta / 2),
        d = prediction - target

    Shape: ``S, S -> ()``; ``S`` with ``reduction="none"``.
    Derivative: ``clip(d / beta, -1, 1) / n`` for `n` elements, the same from both sides where
        ``abs(d) == beta``; minus that for `target`.

    Args:
        prediction: the output of the model.
        target: the right output, of the same shape and dtype.
        beta: where the loss turns linear, > 0 and finite.
        reduction: "mean", "sum", or "none" for the error of each element.

    Raises:
        ShapeError: if the shapes differ, or there are no elements.
        DTypeError: if the dtypes differ or are not floating.
        ArgumentValueError: if `beta` is not positive and finite.
        ArgumentTypeError: if `beta` is not a number.

    Source: Girshick (2015), "Fast R-CNN", equation 3.

    >>> import tapetensor as tt
    >>> smooth_l1(tt.from_numpy([1.0, 5.0], shape=(2,)), tt.from_numpy([0.0, 2.0], shape=(2,)), 2.0)
    Tensor(1.125, shape=(), dtype=float32, NoneTape)
    """
    threshold = as_number("smooth_l1", "beta", beta, above=0)
    check_alike("smooth_l1", prediction=prediction, target=target)
    options = threshold, as_reduction("smooth_l1", reduction)
    return apply(losses.smooth_l1, (prediction, target), options)


@overload
def quantile(
    prediction: Tensor[S, T, F],
    target: Joins[S, T, F],
    q: float,
    *,
    reduction: Literal["mean", "sum"] = "mean",
) -> Tensor0D[T, F]: ...
@overload
def quantile(
    prediction: Tensor[S, T, F],
    target: Joins[S, T, F],
    q: float,
    *,
    reduction: Literal["none"],
) -> Tensor[S, T, F]: ...
def quantile(
    prediction: Tensor[Any, Any, Any],
    target: Joins[Any, T, Any],
    q: float,
    *,
    reduction: Literal["mean", "sum", "none"] = "mean",
) -> Tensor[Any, Any, Any]:
    """Return the pinball loss, which is least where a share `q` of the targets lies below.

        mean(max(q * d, (q - 1) * d)), d = target - prediction

    Of one prediction for ``q=0.1`` and one for ``q=0.9`` come intervals that hold 80 % of the
    targets; ``q=0.5`` is half of `mae`.

    Shape: ``S, S -> ()``; ``S`` with ``reduction="none"``.
    Derivative: ``-q / n`` below the target and ``(1 - q) / n`` above it for `n` elements, the mean
        of both where the two are equal; minus that for `target`.

    Args:
        prediction: the output of the model.
        target: the right output, of the same shape and dtype.
        q: the share of the targets that are to lie below, from 0 to 1.
        reduction: "mean", "sum", or "none" for the error of each element.

    Raises:
        ShapeError: if the shapes differ, or there are no elements.
        DTypeError: if the dtypes differ or are not floating.
        ArgumentValueError: if `q` lies outside of 0 to 1.
        ArgumentTypeError: if `q` is not a number.

    Source: Koenker & Bassett (1978), "Regression quantiles".

    >>> import tapetensor as tt
    >>> quantile(tt.from_numpy([1.0, 5.0], shape=(2,)), tt.from_numpy([3.0, 3.0], shape=(2,)), 0.75)
    Tensor(1., shape=(), dtype=float32, NoneTape)
    """
    share = as_number("quantile", "q", q, at_least=0, at_most=1)
    check_alike("quantile", prediction=prediction, target=target)
    return apply(losses.pinball, (prediction, target), (share, as_reduction("quantile", reduction)))


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
    check_alike(op, prediction=prediction, target=target, variance=variance)
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
    check_alike(op, log_rates=log_rates, counts=counts)
    is_log, is_full = as_flag(op, "log_input", log_input), as_flag(op, "full", full)
    options = is_log, is_full, as_reduction(op, reduction)
    if not is_log:
        check_between(op, log_rates, "a rate that is no logarithm", 0, math.inf)
    return apply(losses.poisson_nll, (log_rates, counts), options)
