"""Numbers that `leakscope audit` must reproduce, from the definition alone.

For every case the table is encoded with plain numpy, the model is fitted by undamped Newton steps, and every
Jacobian J_i = dw*/d(x_i, y_i) is formed as a dense matrix (MATHS.md section 1); leakage is its spectral norm by
SVD. Sets of records are stacked Jacobians. Nothing of Leakscope is used.

    python testdata/make_audit_golden.py     # writes audit_golden.json beside itself

Needs numpy. Run it from anywhere.
"""

import csv
import json
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
ROWS = 300
EVERY = 10  # of the records, this often one is written out in full; the summaries are over all


def read_rows():
    with open(HERE.parent / "examples" / "patients.csv", newline="") as file:
        return list(csv.DictReader(file))[:ROWS]


NUMBERS = ["age", "height", "weight"]
CATEGORIES = ["race", "amiodarone", "enzyme_inducer", "cyp2c9", "vkorc1"]


class Encoded:
    """X (n x d, with the intercept last if any), and where each attribute's columns are."""

    def __init__(self, rows, scale, one_hot, intercept, pca=None):
        columns, names, attributes = [], [], {}
        for name in [c for c in rows[0] if c in NUMBERS + CATEGORIES]:
            first = len(columns)
            if name in NUMBERS:
                x = np.array([float(r[name]) for r in rows])
                centre, unit = (x.mean(), x.std()) if scale == "standard" else (0.0, 1.0)
                columns.append((x - centre) / unit)
                names.append(name)
                attributes[name] = {"number": True, "unit": unit, "sd": x.std(), "levels": 0}
            else:
                levels = sorted({r[name] for r in rows})
                for level in levels if one_hot == "full" else levels[:-1]:
                    columns.append(np.array([float(r[name] == level) for r in rows]))
                    names.append(f"{name}={level}")
                attributes[name] = {"number": False, "unit": 1.0, "sd": None, "levels": len(levels)}
            attributes[name]["columns"] = list(range(first, len(columns)))
        x = np.stack(columns, axis=1)
        if scale == "unit-ball":
            radius = np.linalg.norm(x, axis=1).max()
            x = x / radius
            for a in attributes.values():
                a["unit"] = radius
        raw = x.shape[1]
        # Directions of an attribute in the space of the model's data columns: one column for each encoded column.
        to_model = np.eye(raw)
        if pca is not None:
            values, vectors = np.linalg.eigh(np.cov(x.T, bias=True))
            components = vectors[:, np.argsort(values)[::-1][:pca]].T
            for c in components:
                c *= np.sign(c[np.argmax(np.abs(c))])
            x = (x - x.mean(axis=0)) @ components.T
            to_model = components
            names = [f"pc{k + 1}" for k in range(pca)]
        for a in attributes.values():
            a["directions"] = to_model[:, a["columns"]]
            if not a["number"]:
                # Moves that keep the sum of all indicators: e_j - e_l over pairs span them. Any orthonormal basis of
                # the vectors that sum to zero does; this one is from an SVD. A dropped level has no column.
                k = a["levels"]
                _, _, vt = np.linalg.svd(np.ones((1, k)))
                basis = vt[1:].T  # k x (k - 1)
                a["sum_to_one"] = to_model[:, a["columns"]] @ basis[: len(a["columns"])]
        self.d = x.shape[1]
        self.x = np.hstack([x, np.ones((len(rows), 1))]) if intercept else x
        self.names = names + (["(intercept)"] if intercept else [])
        self.attributes = attributes


def terms(family, z, y):
    """r, a, loss of MATHS.md section 1."""
    if family == "linear":
        return z - y, np.ones_like(z), 0.5 * (z - y) ** 2
    if family == "logistic":
        s = 1.0 / (1.0 + np.exp(-z))
        return s - y, s * (1.0 - s), np.logaddexp(0.0, z) - y * z
    mu = np.exp(z)
    return mu - y, mu, mu - y * z


def fit(family, x, y, omega, l2, d):
    n, p = x.shape
    penalty = np.zeros(p)
    penalty[:d] = n * l2
    w = np.zeros(p)
    if family == "poisson" and p > d:
        w[-1] = np.log(np.average(y, weights=omega))
    for _ in range(60):
        r, a, _ = terms(family, x @ w, y)
        hessian = (x * (omega * a)[:, None]).T @ x + np.diag(penalty)
        step = np.linalg.solve(hessian, x.T @ (omega * r) + penalty * w)
        w = w - step
    assert np.abs(step).max() < 1e-12, (family, step)
    r, a, loss = terms(family, x @ w, y)
    hessian = (x * (omega * a)[:, None]).T @ x + np.diag(penalty)
    return w, r, a, loss, hessian


def summary(values):
    return {
        "mean": float(values.mean()),
        "std": float(values.std()),
        "min": float(values.min()),
        "max": float(values.max()),
        "p50": float(np.quantile(values, 0.5)),
        "p99": float(np.quantile(values, 0.99)),
    }


def some(values):
    return [float(v) for v in values[::EVERY]]


def audit(case, rows):
    family, sigma = case["family"], case["sigma"] / np.sqrt(case.get("releases", 1))
    e = Encoded(rows, case["scale"], case["one_hot"], case["intercept"], case.get("pca"))
    y = case["target"](rows)
    omega = case["weights"](rows) if "weights" in case else np.ones(len(rows))
    w, r, a, loss, hessian = fit(family, e.x, y, omega, case["l2"], e.d)
    inverse = np.linalg.inv(hessian)
    label = case.get("label_secret", True)
    data = np.eye(e.x.shape[1])[:, : e.d]  # the intercept is not data

    def jacobian(i, directions, with_label):
        inner = a[i] * np.outer(e.x[i], w @ directions) + r[i] * directions
        if with_label:
            inner = np.hstack([inner, -e.x[i][:, None]])
        return -omega[i] * inverse @ inner / sigma

    def norms(directions, with_label):
        return np.array([np.linalg.norm(jacobian(i, directions, with_label), 2) for i in range(len(rows))])

    def together(members, directions, with_label):
        stacked = np.hstack([jacobian(i, directions, with_label) for i in members])
        return float(np.linalg.norm(stacked, 2))

    everyone = range(len(rows))
    eta = norms(data, label)
    dfil = np.array([(jacobian(i, data, label) ** 2).sum() for i in everyone]) / (e.d + label)
    out = {
        "name": case["name"],
        "arguments": case["arguments"],
        "d": e.d,
        "coefficients": dict(zip(e.names, map(float, w))),
        "records": {
            "eta": some(eta),
            "dfil": some(dfil),
            "loss": some(loss),
            "gradient_norm": some(np.abs(r) * np.linalg.norm(e.x, axis=1)),
        },
        "eta": summary(eta),
        "dataset_eta": together(everyone, data, label),
        "min_mse": float(1.0 / dfil.max()),
        "attributes": {},
    }
    # Of any estimate of a record, coordinate by coordinate: 1/(mean information + information of the prior).
    variance = np.var(np.column_stack([e.x[:, : e.d]] + ([y] if label else [])), axis=0)
    assert (variance > 1e-12).all()
    for name, sd in case.get("prior_sd", {}).items():
        variance[e.names.index(name)] = (sd / e.attributes[name]["unit"]) ** 2
    information = np.mean([(jacobian(i, data, label) ** 2).sum(axis=0) for i in everyone], axis=0)
    out["min_mse_with_prior"] = float((1.0 / (information + 1.0 / variance)).mean())
    for name, attribute in e.attributes.items():
        def over(directions):
            full = np.zeros((e.x.shape[1], directions.shape[1]))
            full[: e.d] = directions
            each = norms(full, False)
            return each, together(everyone, full, False)

        each, over_all = over(attribute["directions"])
        unit = attribute["unit"]
        result = {
            "eta": some(each),
            "eta_mean": float(each.mean()),
            "eta_max": float(each.max()),
            "eta_over_all_records": over_all,
            "min_sd": float(unit / each.max()),
            "min_sd_typical": float(unit / each.mean()),
        }
        if attribute["number"]:
            prior = case.get("prior_sd", {}).get(name, attribute["sd"])
            result["population_sd"] = float(attribute["sd"])
            result["min_rmse_with_prior"] = float(1 / np.sqrt((each**2).mean() / unit**2 + 1 / prior**2))
        else:
            each, over_all = over(attribute["sum_to_one"])
            if case["one_hot"] == "full" and each.max() > 0:
                # Who knows that one of k levels applies: var(c_j) >= |P e_j|^2 / eta^2, |P e_j|^2 = 1 - 1/k.
                along = unit * np.sqrt(1 - 1 / len(attribute["directions"].T))
                result["min_sd"] = min(result["min_sd"], float(along / each.max()))
                result["min_sd_typical"] = min(result["min_sd_typical"], float(along / each.mean()))
            result["sum_to_one"] = {
                "eta": some(each),
                "eta_mean": float(each.mean()),
                "eta_max": float(each.max()),
                "eta_over_all_records": over_all,
            }
        out["attributes"][name] = result
    if "group" in case:
        column = [row[case["group"]] for row in rows]
        out["groups"] = []
        for level in sorted(set(column)):
            members = [i for i in everyone if column[i] == level]
            of = summary(eta[members])
            out["groups"].append(
                {
                    "name": level,
                    "n": len(members),
                    "eta": together(members, data, label),
                    "eta_mean": of["mean"],
                    "eta_median": of["p50"],
                    "eta_max": of["max"],
                }
            )
    return out


def dose(rows):
    return np.array([float(r["dose"]) for r in rows])


def high(rows):
    return np.array([float(float(r["dose"]) > 30.0) for r in rows])


def rounded(rows):
    return np.array([float(round(float(r["dose"]))) for r in rows])


def weights(rows):
    return np.array([0.5 + (i % 4) / 2.0 for i in range(len(rows))])


# The test makes the columns `high` (yes/no), `count` and `w` by the same rules; each case drops what it does not use.
BASE = {"scale": "standard", "one_hot": "drop-last", "intercept": True, "l2": 0.0, "sigma": 1.0}
CASES = [
    BASE | {
        "name": "linear", "family": "linear", "target": dose, "sigma": 0.5, "group": "race",
        "prior_sd": {"age": 3.0},
        "arguments": "--target dose --drop high,count,w --sigma 0.5 --group race --prior-sd age=3",
    },
    BASE | {
        "name": "linear, ridge, all levels, weights, label public, three releases",
        "family": "linear", "target": dose, "one_hot": "full", "l2": 0.01, "weights": weights,
        "label_secret": False, "releases": 3,
        "arguments": "--target dose --drop high,count --weights w --one-hot full --l2 0.01 --label public --releases 3",
    },
    BASE | {
        "name": "logistic", "family": "logistic", "target": high, "l2": 0.001, "group": "vkorc1",
        "arguments": "--target high --drop dose,count,w --model logistic --l2 0.001 --group vkorc1",
    },
    BASE | {
        "name": "logistic, weights, no intercept, all levels",
        "family": "logistic", "target": high, "l2": 0.02, "weights": weights, "one_hot": "full",
        "intercept": False,
        "arguments": "--target high --drop dose,count --weights w --model logistic --l2 0.02 --one-hot full "
        "--no-intercept",
    },
    BASE | {
        "name": "poisson", "family": "poisson", "target": rounded, "group": "amiodarone",
        "arguments": "--target count --drop dose,high,w --model poisson --group amiodarone",
    },
    BASE | {
        "name": "linear, plus and minus one, unit ball, components, no intercept",
        "family": "linear", "target": lambda rows: 2.0 * high(rows) - 1.0, "scale": "unit-ball",
        "one_hot": "full", "intercept": False, "pca": 4,
        "arguments": "--target high --drop dose,count,w --scale unit-ball --one-hot full --no-intercept --pca 4",
    },
    BASE | {
        "name": "linear, unit ball",
        "family": "linear", "target": dose, "scale": "unit-ball", "l2": 1e-4,
        "arguments": "--target dose --drop high,count,w --scale unit-ball --l2 1e-4",
    },
    BASE | {
        "name": "linear, unscaled",
        "family": "linear", "target": dose, "scale": "none",
        "arguments": "--target dose --drop high,count,w --scale none",
    },
]


def main():
    rows = read_rows()
    golden = {"rows": ROWS, "every": EVERY, "cases": [audit(case, rows) for case in CASES]}
    path = HERE / "audit_golden.json"
    path.write_text(json.dumps(golden, indent=None, separators=(",", ":")) + "\n")
    print(f"wrote {path.name}: {len(golden['cases'])} cases, {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
