"""Networks on the rows of a table: the command line and Python give the same, attributes have their closed form."""

import json
import os
import subprocess

import numpy as np
import pandas as pd
import polars as pl
import pytest

import leakscope


def patients(n=120, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"who": [f"p{i}" for i in range(n)], "age": rng.normal(50, 12, n),
                          "race": rng.choice(["asian", "black", "white"], n)})
    table["dose"] = 20 - 0.2 * (table["age"] - 50) + rng.normal(size=n)
    return table


def trained(data, **more):
    options = dict(target="dose", id="who", network="linear", precision="f64", batch=30, steps=20, lr=0.05, seed=3)
    return leakscope.train_network(data, **{**options, **more})


def test_attributes_of_a_linear_network_have_the_closed_form():
    table = patients()
    run = trained(table, unit={"age": "years"})
    result = run.network.audit(table, sigma=2.0, trace="exact", eta=True)
    weight = run.network.parameters["layers.1.weight"].reshape(-1)
    bias = run.network.parameters["layers.1.bias"][0]

    def standard(v):
        return (v - v.mean()) / v.std()

    x = np.column_stack([standard(table["age"].to_numpy()), table["race"] == "asian", table["race"] == "black"]).astype(float)
    r = x @ weight + bias - standard(table["dose"].to_numpy())
    for i in range(len(x)):
        # the gradient is (r x, r): its Jacobian by the values of the record
        j = np.vstack([np.outer(x[i], weight) + r[i] * np.eye(3), weight]) / 2.0
        of = result.records.iloc[i]
        assert of["eta_age"] == pytest.approx(np.linalg.norm(j[:, 0]), rel=1e-9)
        assert of["eta_race"] == pytest.approx(np.linalg.norm(j[:, 1:], 2), rel=1e-9)
        assert of["trace"] == pytest.approx((j**2).sum(), rel=1e-9)
    assert list(result.records.index) == list(table["who"])
    age = next(a for a in result["attributes"] if a["name"] == "age")
    assert age["unit"] == "years" and "years" in result.summary()
    most = result.records["eta_age"].max()
    assert age["min_sd"] == pytest.approx(table["age"].std(ddof=0) / most, rel=1e-4)
    assert age["min_sd"] <= table["age"].std(ddof=0) / most


def test_frames_and_files_are_the_same(tmp_path):
    table = patients()
    path = tmp_path / "patients.parquet"
    table.to_parquet(path, index=False)
    runs = [trained(data, holdout=0.2) for data in (table, pl.from_pandas(table), path)]
    weights = [run.network.parameters["layers.1.weight"] for run in runs]
    for run, w in zip(runs[1:], weights[1:]):
        np.testing.assert_array_equal(w, weights[0])
        assert run["data"]["test_records"] == runs[0]["data"]["test_records"]
    audits = [runs[0].network.audit(data, trace="exact", seed=1) for data in (table, pl.from_pandas(table), path)]
    for other in audits[1:]:
        assert other["attributes"] == audits[0]["attributes"]
        assert other["data"]["records"] == runs[0]["data"]["records"]


def test_the_command_line_reads_what_python_left(tmp_path):
    table = patients()
    path = tmp_path / "patients.csv"
    table.to_csv(path, index=False, float_format="%.17g")
    run = trained(table, sigma=1.0, track=True, out=tmp_path / "run")
    assert (tmp_path / "run" / "private" / "encoding.json").is_file()
    own = run.network.audit(table, trace="exact", sigma=1.0, clip=1.0)
    command = [os.environ["LEAKSCOPE_BIN"], "net", "audit", "--model", tmp_path / "run", "--data", path, "--trace", "exact",
               "--records", "all", "--seed", "1", "--json"]
    theirs = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert [a["name"] for a in theirs["attributes"]] == [a["name"] for a in own["attributes"]]
    for a, b in zip(theirs["attributes"], own["attributes"]):
        assert a["eta_max"] == pytest.approx(b["eta_max"], rel=1e-9)
    again = leakscope.Network.load(tmp_path / "run")
    np.testing.assert_array_equal(again.audit(path, trace="exact", seed=1).records["trace"],
                                  run.network.audit(table, trace="exact", seed=1).records["trace"])


def test_two_classes_and_budgets():
    table = patients(200)
    table["high"] = np.where(table["dose"] > table["dose"].median(), "yes", "no")
    table["budget"] = np.where(np.arange(200) % 2 == 0, 0.8, 50.0)
    rows = table.drop(columns="dose")
    options = dict(target="high", sigma=1.2, track="every", steps=60, label="secret")
    public = dict(bounds={"age": (-100, 200)}, scale="bounds", levels={"race": ["asian", "black", "white"], "high": ["no", "yes"]})
    run = trained(rows, filter_budgets="budget", **options, **public)
    assert run.epsilon() <= 50
    # what is read off the records leaves no ε, of a record or of all
    with pytest.raises(leakscope.OptionError, match="filter_budgets: mean and spread of age, the levels of race, the classes of high"):
        trained(rows, filter_budgets="budget", **options)
    assert trained(rows.drop(columns="budget"), **options).epsilon() == float("inf")
    assert run["filter"]["budgets"] == pytest.approx([0.8, 50.0])
    dropped = run.records["dropped_after_steps"].notna().to_numpy()
    assert dropped.any() and not dropped[1::2].any()
    # nobody's own ε passes his budget
    assert (run.records["epsilon"].to_numpy()[::2] <= 0.8).all()
    result = run.network.audit(table, trace="exact")
    assert {a["name"] for a in result["attributes"]} >= {"age", "race"}
    with pytest.raises(leakscope.OptionError, match="grid"):
        run.network.audit(table, grid=2, plis=True)


def test_three_classes():
    table = patients(150)
    table["grade"] = pd.cut(table["dose"], [-np.inf, 19, 21, np.inf], labels=["low", "mid", "top"]).astype(str)
    rows = table.drop(columns="dose")
    for frame in (rows, pl.from_pandas(rows)):
        run = trained(frame, target="grade", label="secret")
        assert run["network"]["outputs"] == 3 and run["network"]["loss"] == "softmax-cross-entropy"
        result = run.network.audit(frame, trace="exact", label="secret")
        assert {a["name"] for a in result["attributes"] if a["is_label"]} == {"grade"}
        assert set(result.records["label"]) == {"low", "mid", "top"}
    coded = rows.assign(grade=rows["grade"].map({"low": 1, "mid": 4, "top": 9}))
    by_number = trained(coded, target="grade", loss="softmax-cross-entropy")
    np.testing.assert_array_equal(by_number.network.parameters["layers.1.weight"], run.network.parameters["layers.1.weight"])


def test_what_cannot_be_is_named():
    table = patients(40)
    with pytest.raises(leakscope.DataError, match="predicted"):
        leakscope.train_network(table, network="linear")
    with pytest.raises(leakscope.LeakscopeError, match="dosis"):
        trained(table, target="dosis")
    with pytest.raises(leakscope.OptionError, match="unit"):
        trained(table, unit={"size": "cm"})
    with pytest.raises(leakscope.OptionError, match="holdout"):
        trained(table, holdout=2.0)
    with pytest.raises(leakscope.OptionError, match="filter_budgets"):
        trained(table, sigma=1.0, filter_budgets=[1.0, 2.0])


def net(precision="f64"):
    return leakscope.Network("mlp", input=(5,), outputs=3, seed=1, precision=precision)


def arrays(n=40):
    rng = np.random.default_rng(1)
    return rng.normal(size=(n, 5)), rng.integers(0, 3, n)


def test_load_keeps_the_precision_of_the_file(tmp_path):
    for precision, kind in (("f32", np.float32), ("f64", np.float64)):
        net(precision).save(tmp_path / precision)
        again = leakscope.Network.load(tmp_path / precision)
        assert again._native.double() == (precision == "f64")
        assert {a.dtype for a in again.parameters.values()} == {np.dtype(kind)}
    assert leakscope.Network.load(tmp_path / "f64", precision="f32")._native.double() is False


@pytest.mark.parametrize(("precision", "digits"), [("f32", 2e-5), ("f64", 1e-11)])
def test_results_do_not_depend_on_who_is_measured_together(precision, digits):
    x, y = arrays()
    options = dict(clip=1.0, sigma=1.0, trace=3, eta=True, plis=True, seed=4)
    together = net(precision).audit(x, y, **options).records
    for chosen in ([7], [3, 7, 21], range(0, 40, 5)):
        apart = net(precision).audit(x, y, records=list(chosen), **options).records
        for column in apart.columns:
            np.testing.assert_allclose(apart[column].to_numpy(dtype=float),
                                       together.iloc[list(chosen)][column].to_numpy(dtype=float), rtol=digits, err_msg=column)


def test_the_runs_own_epsilon_and_renyi_columns():
    x, y = arrays(60)
    run = net("f32").train(x, y, steps=12, batch=12, clip=1.0, sigma=1.5, track="every", probes=2, seed=1)
    own = run["privacy"]["epsilon"]
    assert run.epsilon() == own and run.epsilon(1e-5) == pytest.approx(own, rel=5e-3)
    assert (run.records["epsilon"] <= own).all() and (run.records["epsilon"] > 0).all()
    assert run.renyi.shape == (60, sum(c.startswith("renyi_") for c in run.records.columns))
    assert (run.renyi.to_numpy() >= 0).all()
    shuffled = net("f32").train(x, y, steps=5, batch=12, clip=1.0, sigma=1.5, sampling="shuffle", seed=1)
    assert shuffled.epsilon() == shuffled["privacy"]["epsilon"]
    assert shuffled.renyi is None


def test_a_panel_is_followed_and_others_are_where_they_are_drawn():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(500, 4)), rng.integers(0, 2, 500)
    run = leakscope.Network("linear", input=(4,), outputs=2, seed=1).train(
        x, y, steps=6, batch=20, clip=1.0, sigma=1.0, track=True, probes=2, seed=1)
    accounts, records = run["accounts"], run.records
    assert accounts["followed"] == accounts["accounted"] == 370 == int(records["followed"].sum())
    assert accounts["below"]["share"] == pytest.approx(0.025 ** (1 / 370))
    unseen = records[records["steps_measured"] == 0]
    assert len(unseen) == accounts["not_drawn"] > 0
    # nothing is known of these: no 0, and the ε that holds for all
    assert unseen["dfil"].isna().all() and (unseen["epsilon"] == run.epsilon()).all()
    followed = records[records["followed"] == 1]
    assert (followed["steps_measured"] == 6).all() and (followed["epsilon"] <= run.epsilon()).all()
    assert {m["record"] for m in accounts["most"]} <= set(np.flatnonzero(records["followed"] == 1))
