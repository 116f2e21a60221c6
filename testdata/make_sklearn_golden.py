"""Coefficients of scikit-learn's generalised linear models, to compare `leakscope_core::glm::fit` with.

Writes `sklearn_golden.json` beside this script. Needs numpy and scikit-learn. Leakscope minimises

    sum_i omega_i loss(w.x_i + b, y_i) + (n l2 / 2) ||w||^2          n = number of rows, b not penalised

    Ridge(alpha)             sum omega (y - z)^2 + alpha ||w||^2       alpha = n l2 (both sides halved)
    LinearRegression         the same without a penalty
    LogisticRegression(C)    C sum omega loss + ||w||^2 / 2            C = 1 / (n l2)
    PoissonRegressor(alpha)  sum omega (e^z - y z) / sum omega + alpha ||w||^2 / 2
                             (half the mean deviance, up to a constant) alpha = n l2 / sum omega,
                             which is l2 itself without weights

    python make_sklearn_golden.py
"""

import json
import pathlib

import numpy as np
import sklearn
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge

TOLERANCE = 1e-14
NEWTON = {"solver": "newton-cholesky", "tol": TOLERANCE, "max_iter": 1000}
SETTINGS = [(0.0, True, False), (0.05, True, False), (0.02, False, True), (1.0, True, True)]


def model(family, l2, intercept, n, total_weight):
    if family == "linear" and l2 == 0:
        return LinearRegression(fit_intercept=intercept, tol=TOLERANCE)
    if family == "linear":
        return Ridge(alpha=n * l2, fit_intercept=intercept, solver="cholesky", tol=TOLERANCE)
    if family == "logistic":
        c = 1 / (n * l2) if l2 > 0 else np.inf
        return LogisticRegression(C=c, fit_intercept=intercept, **NEWTON)
    return PoissonRegressor(alpha=n * l2 / total_weight, fit_intercept=intercept, **NEWTON)


def tables():
    """Name, columns, linear predictor."""
    rng = np.random.default_rng(31)
    x = np.round(rng.standard_normal((60, 4)), 3)
    yield "standardised", x, x @ [0.8, -0.5, 0.0, 0.3] + 0.2

    # Age, weight and a dose in their own units, two of them correlated.
    age = np.round(rng.uniform(20, 80, 80))
    weight = np.round(50 + 0.4 * age + 8 * rng.standard_normal(80), 1)
    dose = np.round(rng.lognormal(-3, 0.5, 80), 4)
    x = np.column_stack([age, weight, dose])
    yield "own units", x, 0.02 * (age - 50) - 0.01 * (weight - 70) + 4 * (dose - 0.05)

    levels = np.eye(3)[rng.integers(0, 3, 50)][:, :2]
    x = np.column_stack([np.round(rng.standard_normal((50, 2)), 3), levels])
    yield "a category", x, x @ [0.6, 0.4, -0.7, 0.5]


def main():
    rng = np.random.default_rng(37)
    cases = []
    for table, x, z in tables():
        n = len(z)
        targets = {
            "linear": np.round(z + 0.5 * rng.standard_normal(n), 3),
            "logistic": (z + rng.logistic(size=n) > 0).astype(float),
            "poisson": rng.poisson(np.exp(z)).astype(float),
        }
        weights = np.round(rng.uniform(0.3, 2.5, n), 2)
        for family, y in targets.items():
            for l2, intercept, weighted in SETTINGS:
                weight = weights if weighted else np.ones(n)
                fitted = model(family, l2, intercept, n, weight.sum()).fit(x, y, sample_weight=weight)
                w = np.ravel(fitted.coef_).tolist()
                if intercept:
                    w.append(float(np.ravel(fitted.intercept_)[0]))
                cases.append({
                    "table": table, "family": family, "l2": l2, "intercept": intercept,
                    "y": y.tolist(), "weight": weight.tolist() if weighted else [], "w": w,
                })
    out = {"version": sklearn.__version__, "tables": {t: x.tolist() for t, x, _ in tables()}, "cases": cases}
    path = pathlib.Path(__file__).with_name("sklearn_golden.json")
    path.write_text(json.dumps(out, allow_nan=False) + "\n")
    print(f"{len(cases)} fits by scikit-learn {sklearn.__version__}")


if __name__ == "__main__":
    main()
