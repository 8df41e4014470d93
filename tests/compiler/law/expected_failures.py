"""What breaks the law today: a line goes when its scenario is mended."""

# Names of scenarios are their programs.
# ruff: noqa: E501

from __future__ import annotations

EXPECTED_FAILURES: dict[str, str] = {
    'views: np.diagonal(x)': 'WRONG',
    'types: type(x).__name__': 'WRONG',
    'types: len(np.bincount((x > 0).ravel().astype(int)))': 'NO CURE',
    'types: np.unique(x)': 'NO CURE',
    'types: x[x > 0]': 'NO CURE',
    'types: np.nonzero(x)': 'NO CURE',
    'surroundings: a tensor is kept in a result': 'WRONG',
    'training: a loss as an array': 'WRONG',
}
