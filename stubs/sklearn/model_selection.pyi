from typing import Any

class GridSearchCV:
    best_params_: dict[str, Any]
    best_score_: float
    def __init__(self, estimator: Any, param_grid: dict[str, Any], *, cv: int) -> None: ...
    def fit(self, X: Any, y: Any) -> GridSearchCV: ...
