"""Arrays and frames of every kind and layout, and what is wrong with some of them."""

import copy
import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import leakscope
from leakscope import DataError, FitError, LeakscopeError, OptionError


def eta(*args, **options):
    return leakscope.audit(*args, l2=0.01, sigma=0.5, **options).records["eta"].to_numpy()


def test_layouts_do_not_change_the_numbers(linear):
    x, y = linear
    expected = eta(x, y)
    wide = np.zeros((400, 10))
    wide[:, ::2] = x
    frozen = x.copy()
    frozen.flags.writeable = False
    bytes_off = np.frombuffer(b"\0" + x.tobytes(), dtype=np.uint8)[1:].view(np.float64).reshape(x.shape)
    for name, same in {
        "Fortran": np.asfortranarray(x), "strided": wide[:, ::2], "backwards": x[::-1][::-1], "read-only": frozen,
        "big-endian": x.astype(">f8"), "list": x.tolist(), "unaligned": bytes_off,
    }.items():
        assert np.array_equal(eta(same, y), expected), name
    assert np.array_equal(eta(x[::-1], y[::-1])[::-1].argsort(), expected.argsort())


def test_float32_is_computed_in_double(linear):
    x, y = linear
    x32 = x.astype(np.float32)
    assert np.array_equal(eta(x32, y), eta(x32.astype(np.float64), y))


def test_integers_and_booleans_are_numbers_in_an_array():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 5, size=(200, 3))
    y = x.sum(axis=1) + rng.normal(size=200)
    assert np.array_equal(eta(x, y), eta(x.astype(float), y))
    assert np.array_equal(eta(x > 2, y), eta((x > 2).astype(float), y))


def frames(df):
    return {"pandas": df, "polars": pl.from_pandas(df), "pyarrow": pa.Table.from_pandas(df, preserve_index=False)}


def table(n=300):
    rng = np.random.default_rng(5)
    df = pd.DataFrame({
        "age": rng.integers(20, 90, n).astype(float),
        "weight": rng.normal(70, 10, n),
        "race": rng.choice(["a", "b", "c"], n),
        "smoker": rng.random(n) < 0.3,
    })
    df["dose"] = df["age"] / 10 + (df["race"] == "a") + rng.normal(size=n)
    return df


def test_results_are_frames_of_the_callers_kind():
    for kind, df in frames(table()).items():
        result = leakscope.audit(df, target="dose", group="race", sigma=1.0, l2=0.01)
        for answer in (result.records, result.attributes, result.groups):
            assert type(answer).__module__.split(".")[0] == kind
        assert len(result.records) == 300 and len(result.groups) == 3
        columns = list(getattr(result.records, "column_names", result.records.columns))
        assert {"eta", "eta_age", "eta_race", "eta_race_sum_to_one"} <= set(columns), kind


def test_records_are_indexed_as_the_callers():
    df = table()
    df.index = [f"p{i}" for i in range(len(df))]
    df.loc["p3", "age"] = np.nan
    result = leakscope.audit(df, target="dose", missing="drop", sigma=1.0, l2=0.01)
    assert list(result.records.index) == [i for i in df.index if i != "p3"]
    assert result.records["eta"].idxmax() == result["records"]["most"][0]["id"]
    held = leakscope.audit(df.drop("p3"), target="dose", holdout=0.3, seed=4, sigma=1.0, l2=0.01)
    assert held.records.index.isin(df.index).all() and len(held.records) == held["n"] < 299
    # The values are those of the right rows.
    whole = leakscope.audit(df.drop("p3").reset_index(drop=True), target="dose", sigma=1.0, l2=0.01).records
    again = leakscope.audit(df.drop("p3"), target="dose", sigma=1.0, l2=0.01).records
    assert np.array_equal(whole["eta"].to_numpy(), again["eta"].to_numpy())


def test_an_id_column_and_the_index_together():
    df = table()
    df["patient"] = [f"n{i:03}" for i in range(len(df))]
    df.index = range(1000, 1300)
    records = leakscope.audit(df, target="dose", id="patient", sigma=1.0, l2=0.01).records
    assert list(records.index) == list(df.index) and list(records["patient"]) == list(df["patient"])


def test_categories_of_every_make_are_the_same():
    df = table()
    expected = leakscope.audit(df, target="dose", sigma=1.0, l2=0.01).records["eta"].to_numpy()
    others = {
        "category": df.assign(race=df["race"].astype("category")),
        "object": df.assign(race=df["race"].astype(object), smoker=df["smoker"].astype(object)),
        "nullable": df.assign(age=df["age"].astype("Int64"), smoker=df["smoker"].astype("boolean")),
        "text": df.assign(smoker=df["smoker"].map({True: "true", False: "false"})),
    }
    for name, other in others.items():
        result = leakscope.audit(other, target="dose", sigma=1.0, l2=0.01).records["eta"].to_numpy()
        assert np.array_equal(result, expected), name
    cast = pl.from_pandas(df).with_columns(pl.col("race").cast(pl.Categorical))
    result = leakscope.audit(cast, target="dose", sigma=1.0, l2=0.01).records["eta"].to_numpy()
    assert np.array_equal(result, expected)
    dictionary = pa.Table.from_pandas(df)
    dictionary = dictionary.set_column(2, "race", dictionary["race"].dictionary_encode())
    result = leakscope.audit(dictionary, target="dose", sigma=1.0, l2=0.01).records["eta"].to_numpy()
    assert np.array_equal(result, expected)


def test_chunks_do_not_matter():
    df = table()
    whole = pa.Table.from_pandas(df, preserve_index=False)
    pieces = pa.concat_tables([whole.slice(0, 7), whole.slice(7, 100), whole.slice(107)])
    options = dict(target="dose", sigma=1.0, l2=0.01)
    assert pieces["age"].num_chunks == 3
    assert leakscope.audit(pieces, **options).records.equals(leakscope.audit(whole, **options).records)
    numbers = dict(options, drop=["race", "smoker"])
    assert leakscope.audit(pieces, **numbers).records.equals(leakscope.audit(whole, **numbers).records)


def test_what_is_public_of_a_table(tmp_path):
    df = table()
    options = dict(target="dose", sigma=1.0, l2=0.01)
    levels = {"race": ["c", "b", "a"]}
    inputs = leakscope.audit(df, bounds={"age": (0, 120), "weight": "20..200"}, levels=levels, **options)
    (tmp_path / "levels.json").write_text(json.dumps(levels))
    from_file = leakscope.audit(df, bounds={"age": [0, 120], "weight": (20.0, 200.0)}, levels=tmp_path / "levels.json", **options)
    assert inputs.document["model"] == from_file.document["model"]
    schema = {"version": 1, "columns": [
        {"name": "age", "kind": "number", "bounds": [0, 120]}, {"name": "weight", "kind": "number", "bounds": [20, 200]},
        {"name": "race", "kind": "category", "levels": levels["race"]}, {"name": "smoker", "kind": "category"},
        {"name": "dose", "kind": "number"}]}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    for by in (schema, tmp_path / "schema.json"):
        assert leakscope.audit(df, schema=by, **options).document["model"] == inputs.document["model"]
    # A public list may hold a level that no record has; a value that it does not list is an error.
    wider = leakscope.audit(df, levels={"race": ["a", "b", "c", "d"]}, **{**options, "l2": 0.1})
    # the last of them is what the others are against
    names = wider.document["model"]["coefficients"]
    assert [name for name in names if name.startswith("race=")] == ["race=a", "race=b", "race=c"], names
    with pytest.raises(DataError, match="none of its listed levels"):
        leakscope.audit(df, levels={"race": ["a", "b"]}, **options)
    with pytest.raises(DataError, match="age.*clip_to_bounds"):
        leakscope.audit(df, bounds={"age": (30, 60)}, **options)
    assert leakscope.audit(df, bounds={"age": (30, 60)}, clip_to_bounds=True, **options)["n"] == 300
    for bad, words in (({"age": (60, 30)}, "bounds"), ({"age": "wide"}, "bounds"), (3, "bounds=3: expected a mapping")):
        with pytest.raises(LeakscopeError, match=words):
            leakscope.audit(df, bounds=bad, **options)
    with pytest.raises(OptionError, match="clip_to_bounds: there are no bounds: give them with bounds or a schema"):
        leakscope.audit(df, clip_to_bounds=True, **options)
    path = tmp_path / "comma.csv"
    path.write_text("1,5;2\n2,5;3\n0,5;7\n4,0;1\n2,0;9\n")
    result = leakscope.audit(path, target="c2", header=False, decimal=",", delimiter=";", l2=0.1)
    assert result["n"] == 5 and result.attributes.index.tolist() == ["c1"]
    with pytest.raises(OptionError, match="decimal=';': expected '.' or ','"):
        leakscope.audit(path, target="c2", decimal=";")
    with pytest.raises(OptionError, match="encoding='ebcdic': expected 'utf-8', 'latin-1' or 'utf-16'"):
        leakscope.audit(path, target="c2", encoding="ebcdic")


def test_results_are_arrow():
    for df in frames(table()).values():
        result = leakscope.audit(df, target="dose", group="race", sigma=1.0, l2=0.01)
        records = result.table()
        assert len(records) == 300 and records.names()[:3] == ["row", "race", "eta"]
        arrow = pa.table(records)
        assert arrow.schema.field("row").type == pa.int64() and arrow.schema.field("eta").type == pa.float64()
        assert arrow["row"].to_pylist() == list(range(1, 301))
        assert pl.DataFrame(records)["eta"].to_list() == arrow["eta"].to_pylist() == list(np.asarray(result.records["eta"]))
        assert pa.schema(records).equals(arrow.schema)
        # A stream can be read again: each is its own.
        assert pa.table(records).equals(arrow)
        attributes = pa.table(result.table("attributes"))
        assert attributes["name"].to_pylist() == [a["name"] for a in result["attributes"]]
        assert attributes["eta_max"].to_pylist() == [a["eta_max"] for a in result["attributes"]]
        with pytest.raises(LeakscopeError, match="name='weights': this result has 'records', 'attributes', 'groups'"):
            result.table("weights")


def test_frames_without_any_library_are_dicts_of_arrays(monkeypatch):
    from leakscope import _tables

    df = table()
    expected = leakscope.audit(df[["age", "weight"]], df["dose"], sigma=1.0, l2=0.01).records
    result = leakscope.audit(df[["age", "weight"]].to_numpy(), df["dose"].to_numpy(), sigma=1.0, l2=0.01)
    monkeypatch.setattr(_tables, "_there", lambda module: False)
    assert isinstance(result.records, dict) and np.array_equal(result.records["eta"], expected["eta"])
    assert result.attributes["name"].tolist() == ["x0", "x1"] and result.records["row"].tolist() == list(range(1, 301))


def test_results_share_one_protocol(linear, tmp_path):
    x, y = linear
    classes = (y > 0).astype(int)
    net = leakscope.Network("linear", input=(5,), outputs=2, seed=1)
    results = {
        "audit": leakscope.audit(x, y, sigma=0.1),
        "balance": leakscope.balance(x, y, l2=0.1, iterations=2),
        "attack": leakscope.attack(np.column_stack([x, x[:, 0] > 0]), y, secret="x5", l2=0.01, sigmas=0.1, trials=5, seed=1),
        "release": leakscope.release(x, y, sigma=0.5, out=tmp_path / "ledger"),
        "account": leakscope.account(sigma=1, rate=0.01, steps=10, delta=1e-5),
        "bound": leakscope.bound(mechanism="gaussian", candidates=10, sigma=1, trials=0),
        "calibrate": leakscope.calibrate(epsilon=2, delta=1e-5, rate=0.01, steps=100, adjacency="add-remove"),
        "net": net.audit(x, classes, trace="skip"),
        "training": net.train(x, classes, steps=3, batch=50, sigma=1.0, track="drawn", seed=1),
    }
    for name, result in results.items():
        assert isinstance(result, leakscope.Result)
        assert result.document["schema"].startswith("leakscope.") and result["schema"] == result.document["schema"]
        assert json.loads(result.to_json()) == result.document and len(result.summary()) > 20
        rows = {"audit": 400, "balance": 400, "net": 400, "training": 400}.get(name)
        assert result.records is None if rows is None else len(result.records) == rows, name
        written = result.save(tmp_path / name)
        assert any(json.loads(p.read_text()) for p in written if p.suffix == ".json"), name
        if name == "calibrate":
            with pytest.raises(LeakscopeError, match="no page"):
                result.report(tmp_path / "page.html")
        else:
            assert "<html" in result.report(tmp_path / f"{name}.html").read_text()
            assert "report.html" in {p.name for p in written}
        with pytest.raises(OptionError, match="format='ods': expected 'parquet' or 'csv'"):
            result.save(tmp_path / name, format="ods")


def test_missing_values_as_on_the_command_line():
    for kind, df in frames(table().assign(age=lambda d: d["age"].mask(d.index == 10))).items():
        with pytest.raises(DataError, match="age"):
            leakscope.audit(df, target="dose")
        assert leakscope.audit(df, target="dose", missing="drop")["n"] == 299, kind
        assert leakscope.audit(df, target="dose", missing="mean")["n"] == 300, kind
    x, y = table()[["age", "weight"]].to_numpy().copy(), table()["dose"].to_numpy()
    x[5, 1] = np.nan
    with pytest.raises(DataError, match="x1"):
        leakscope.audit(x, y)
    result = leakscope.audit(x, y, missing="drop")
    assert len(result.records) == 299 and 5 not in result.records.index


def test_arrays_beside_the_data(linear):
    x, y = linear
    group = np.where(x[:, 0] > 0, "high", "low")
    result = leakscope.audit(x, y, group=group, weights=np.linspace(0.5, 2, 400), id=[f"r{i}" for i in range(400)])
    assert sorted(result.groups.index) == ["high", "low"]
    assert list(result.records["id"])[:2] == ["r0", "r1"]
    assert result["d"] == 5, "group, weights and id are no features"
    frame = pd.DataFrame(x, columns=list("abcde"))
    assert np.array_equal(eta(frame, pd.Series(y, name="t")), eta(x, y))


def test_test_and_score(linear):
    x, y = linear
    result = leakscope.audit(x[:300], y[:300], test=(x[300:], y[300:]), score=x[300:], sigma=0.1)
    assert result["utility"]["rows"] == 100 and len(result.scores) == 100
    frame = pd.DataFrame(x, columns=list("abcde")).assign(t=y)
    other = leakscope.audit(frame[:300], target="t", test=frame[300:], score=frame[300:].drop(columns="t"), sigma=0.1)
    assert other["utility"]["at_sigma"] == result["utility"]["at_sigma"]


def test_classes_of_every_kind():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 2))
    y = x[:, 0] + rng.logistic(size=300) > 0
    options = dict(model="logistic", l2=0.01, sigma=1.0)
    expected = leakscope.audit(x, y, **options).records["eta"].to_numpy()
    for classes in (y.astype(int), np.where(y, "yes", "no"), np.where(y, "yes", "no").astype(object), y.tolist()):
        result = leakscope.audit(x, classes, **options).records["eta"].to_numpy()
        assert np.array_equal(result, expected)
    assert leakscope.audit(x, y, positive=False, **options)["data"]["classes"] == ["true", "false"]


def test_names_with_commas():
    df = table().rename(columns={"race": "race, self-reported", "age": "a,b"})
    result = leakscope.audit(df, target="dose", drop=["a,b"], group="race, self-reported", l2=0.01)
    assert result["d"] == 4 and len(result.groups) == 3


class Pointless:
    pass


@pytest.mark.parametrize("call, error, words", [
    (lambda x, y: leakscope.audit(x[:, 0], y), DataError, "1 dimensions.*reshape"),
    (lambda x, y: leakscope.audit(x[None], y), DataError, "3 dimensions"),
    (lambda x, y: leakscope.audit(x, y[:-1]), DataError, "399 values, but there are 400"),
    (lambda x, y: leakscope.audit(x, np.column_stack([y, y])), DataError, "2 dimensions"),
    (lambda x, y: leakscope.audit(x.astype(object), y), DataError, "object.*astype"),
    (lambda x, y: leakscope.audit(x.astype(complex), y), DataError, "complex"),
    (lambda x, y: leakscope.audit(np.where(x > 1, np.inf, x), y), DataError, "infinite|finite"),
    (lambda x, y: leakscope.audit(x, np.where(y > 1, np.inf, y)), DataError, "`y`.*infinite|`y`.*finite|finite.*`y`"),
    (lambda x, y: leakscope.audit(x[:0], y[:0]), DataError, "no rows"),
    (lambda x, y: leakscope.audit(x[:, :0], y), DataError, "no columns"),
    (lambda x, y: leakscope.audit(x), DataError, "target="),
    (lambda x, y: leakscope.audit(x, y, columns=["a"]), DataError, "1 names for 5"),
    (lambda x, y: leakscope.audit(x, y, weights=[1.0]), DataError, "weights: 1 values"),
    (lambda x, y: leakscope.audit(x, y, weights=-np.ones(400)), DataError, "weights"),
    (lambda x, y: leakscope.audit({"a": [1]}, y), DataError, "DataFrame"),
    (lambda x, y: leakscope.audit(Pointless(), y), DataError, "Pointless is no table"),
    (lambda x, y: leakscope.audit(pd.DataFrame(x, columns=list("aabcd")), y), DataError, "`a` occurs twice"),
    (lambda x, y: leakscope.audit(pd.DataFrame(x, index=[0] * 400), y), DataError, "index.*twice.*reset_index"),
    (lambda x, y: leakscope.audit(pd.DataFrame(), target="y"), DataError, "empty|column"),
    (lambda x, y: leakscope.audit(pd.DataFrame({"a": [], "y": []}), target="y"), DataError, "no rows"),
    (lambda x, y: leakscope.audit(pl.DataFrame({"a": [], "y": []}), target="y"), DataError, "no rows"),
    (lambda x, y: leakscope.audit(pd.DataFrame({"a": [1, "b"] * 200}), y), DataError, "`a` holds mixed"),
    (lambda x, y: leakscope.audit(pd.DataFrame({"a": pd.to_timedelta([1] * 400)}), y), DataError, "`a`.*timedelta"),
    (lambda x, y: leakscope.audit(pd.DataFrame(x, columns=list("abcde")), target="z"), DataError, "`z`"),
    (lambda x, y: leakscope.audit("nowhere.csv", target="z"), DataError, "nowhere.csv"),
    (lambda x, y: leakscope.audit(np.column_stack([x, x[:, 0]]), y), FitError, "or add a penalty, for example l2=1e-3"),
    (lambda x, y: leakscope.audit(x, y, model="tree"), OptionError, "^model='tree': expected one of linear, "),
    (lambda x, y: leakscope.audit(x, y, l2=-1), OptionError, "l2=-1: expected zero or a positive number"),
    (lambda x, y: leakscope.audit(x, y, sigma=-1), OptionError, "^sigma=-1: expected a positive number$"),
    (lambda x, y: leakscope.audit(x, y, model="tweedie", power=5), OptionError, "^power=5: expected a number from 1 to 2"),
    (lambda x, y: leakscope.audit(x, y, model="huber", huber_threshold=0), OptionError, "^huber_threshold=0: expected a positive"),
    (lambda x, y: leakscope.audit(x, y, bounds={"x0": (2, 1)}), OptionError, "^bounds={'x0': .2, 1.}: expected two finite numbers"),
    (lambda x, y: leakscope.balance(x, y, min_weight=-1), OptionError, "^min_weight=-1: expected zero or a positive number$"),
    (lambda x, y: leakscope.Network("resnet9000", input=[3], outputs=2), OptionError, "^network='resnet9000': expected one of linear, "),
    (lambda x, y: leakscope.Network("mlp", input=[5], outputs=2).audit(x, y > 0, clip=-1), OptionError, "^clip=-1: expected a positive number$"),
    (lambda x, y: leakscope.audit(x, y, model="logistic"), DataError, "classes|two"),
    (lambda x, y: leakscope.audit(x, y, sigma=1, target_eta=1), OptionError, "target_eta: sigma says how much noise already"),
    (lambda x, y: leakscope.balance(x, y, iterations="many"), OptionError, "iterations='many': expected a whole number"),
    (lambda x, y: leakscope.attack(x, y, secret="z"), OptionError, "`z`"),
    (lambda x, y: leakscope.account(sigma=1, delta=2), OptionError, "delta=2: expected a probability"),
    (lambda x, y: leakscope.bound(mechanism="gaussian", candidates=10), OptionError, "sigma: this mechanism needs it"),
    (lambda x, y: leakscope.calibrate(epsilon=1, delta=1e-5), LeakscopeError, "give two of sigma, rate and steps"),
    (lambda x, y: leakscope.calibrate(target_eta=1), OptionError, "target_eta: it is about a table"),
    (lambda x, y: leakscope.audit(x, y, l2="much"), OptionError, "l2='much': expected a number"),
    (lambda x, y: leakscope.audit(x, y, l2=True), OptionError, "l2=True: expected a number"),
    (lambda x, y: leakscope.audit(x, y, sigma=float("nan")), OptionError, "sigma=nan: expected a finite number"),
    (lambda x, y: leakscope.audit(x, y, pca=1.5), OptionError, "pca=1.5: expected a whole number"),
    (lambda x, y: leakscope.audit(x, y, seed=-1), OptionError, "seed=-1: expected a whole number from 0"),
    (lambda x, y: leakscope.audit(x, y, scale=3), OptionError, "scale=3: expected 'standard', 'unit-ball'"),
    (lambda x, y: leakscope.audit(x, y, statistic="mean"), OptionError, "statistic='mean': it belongs to target_eta"),
    (lambda x, y: leakscope.audit(x, y, target_eta=1, statistic="mode"), OptionError, "statistic='mode': expected 'max'"),
    (lambda x, y: leakscope.audit(x, y, label="open"), OptionError, "label='open': expected 'secret' or 'public'"),
    (lambda x, y: leakscope.audit(x, y, fit_intercept=3), OptionError, "fit_intercept=3: expected True or False"),
    (lambda x, y: leakscope.audit(x, y, prior_sd=3), OptionError, "prior_sd=3: expected a mapping"),
    (lambda x, y: leakscope.audit(x, y, prior_sd={"x0": "wide"}), OptionError, "prior_sd='wide': expected a number"),
    (lambda x, y: leakscope.audit(x, y, fail_above={"median": 1}), OptionError, "fail_above=.'median': 1.: expected"),
    (lambda x, y: leakscope.audit(x, y, target_sd={"q": 1}), OptionError, "target_sd: `q` is not an attribute"),
    (lambda x, y: leakscope.audit(x, y, delimiter="ab"), OptionError, "delimiter='ab': expected one ASCII character"),
    (lambda x, y: leakscope.audit(x, y, holdout=2), DataError, "holdout=2: expected a share between 0 and 1"),
    (lambda x, y: leakscope.balance(x, y, min_weight=2, max_weight=1), OptionError, "min_weight=2: expected"),
    (lambda x, y: leakscope.balance(x, y, max_weight="big"), OptionError, "max_weight='big': expected a number"),
    (lambda x, y: leakscope.balance(x, y, weights_per="row"), OptionError, "weights_per='row': expected 'sample'"),
    (lambda x, y: leakscope.release(x, y, out="."), OptionError, "sigma: how much noise"),
    (lambda x, y: leakscope.release(x, y, out=".", target_eta=-1), OptionError, "target_eta=-1: expected a positive"),
    (lambda x, y: leakscope.release(x, y, out=".", target_eta=1, statistic="x"), OptionError, "statistic='x': expected"),
    (lambda x, y: leakscope.account(sigma=-1, delta=1e-5), OptionError, "sigma=-1: expected"),
    (lambda x, y: leakscope.account(step=[dict(sigmas=1)], delta=1e-5), OptionError, "sigmas: there is no such option"),
    (lambda x, y: leakscope.account(sigma=1, rate=2, delta=1e-5), OptionError, "rate=2: expected a probability"),
    (lambda x, y: leakscope.bound(mechanism="magic"), OptionError, "mechanism='magic': expected 'gaussian', "),
    (lambda x, y: leakscope.bound(eta=1, curve="noise"), OptionError, "eta: it is about one number"),
    (lambda x, y: leakscope.bound(l2=1.0, mechanism="gaussian"), OptionError, "l2: it belongs to a table"),
    (lambda x, y: leakscope.calibrate(epsilon=1, delta=1e-5, advantage=0.1), OptionError, "advantage: epsilon is a target"),
    (lambda x, y: leakscope.calibrate(epsilon=1), OptionError, "epsilon: it needs delta"),
    (lambda x, y: leakscope.calibrate(test=x), OptionError, "test: it belongs to a table"),
    (lambda x, y: leakscope.bound(x, y, sigma=1), OptionError, "secret: say which column of data"),
    (lambda x, y: leakscope.account(step=["sigma"], delta=1e-5), OptionError, "step='sigma': expected a mapping"),
])
def test_bad_input_says_what_to_do(linear, call, error, words):
    with pytest.raises(error, match=f"(?s){words}") as caught:
        call(*linear)
    assert "--" not in str(caught.value) and "⟨" not in str(caught.value), "messages speak Python"


def test_a_column_without_encoding_can_be_dropped():
    df = table().assign(when=pd.to_timedelta(1, unit="D"))
    with pytest.raises(DataError, match="`when`.*drop"):
        leakscope.audit(df, target="dose")
    for frame in frames(df).values():
        assert leakscope.audit(frame, target="dose", drop="when", l2=0.01)["d"] == 5


def test_dates_of_a_frame_are_those_of_a_file(tmp_path):
    """Whatever holds them, dates are days with a remark, and are asked for and named as dates."""
    df = table()
    days = pd.Series(pd.to_datetime("2015-03-01") + pd.to_timedelta(np.arange(len(df)) * 7 % 1900, unit="D"), index=df.index)
    df.assign(when=days.dt.strftime("%Y-%m-%d")).to_csv(tmp_path / "when.csv", index=False)
    options = dict(target="dose", l2=0.01, sigma=0.5, tell={"when": ("2016-01-31", "2019-12-31")})
    of_file = leakscope.audit(tmp_path / "when.csv", **options)
    kinds = {
        "naive": days, "zoned": days.dt.tz_localize("UTC"), "dates": days.dt.date, "numpy": days.to_numpy(),
    }
    for name, column in kinds.items():
        found = leakscope.audit(df.assign(when=column), **options)
        assert np.allclose(found.records["eta"].to_numpy(), of_file.records["eta"].to_numpy(), rtol=1e-9), name
        told = next(t for t in found["tell"]["attributes"] if t["attribute"] == "when")
        assert (told["from"], told["to"]) == ("2016-01-31", "2019-12-31"), name
        assert any("days since 1970-01-01" in note for note in found["notes"]), name
    with pytest.raises(OptionError, match="tell.*holds dates.*2024-12-31"):
        leakscope.audit(df.assign(when=days), **options | {"tell": {"when": ("May", "June")}})


def test_errors_are_value_errors_of_one_family():
    for kind in (DataError, FitError, OptionError, leakscope.BudgetError):
        assert issubclass(kind, LeakscopeError) and issubclass(kind, ValueError)
        assert kind.__module__ == "leakscope" and kind.__doc__


def test_limits_and_release(linear, tmp_path):
    x, y = linear
    assert not leakscope.audit(x, y, sigma=0.1, fail_above={"eta": 1e-9}).within_limits
    assert leakscope.audit(x, y, sigma=0.1, fail_above={"eta": 1e9}).within_limits
    first = leakscope.release(x, y, target_eta=0.5, budget_eta=0.6, out=tmp_path)
    assert first["eta"]["max"] <= 0.5 and len(first.coefficients) == 6
    with pytest.raises(leakscope.BudgetError, match="above the budget"):
        leakscope.release(x, y, target_eta=0.5, budget_eta=0.6, out=tmp_path)
    with pytest.raises(LeakscopeError, match="other data"):
        leakscope.release(x + 1, y, target_eta=0.1, out=tmp_path)


def test_the_page_and_the_notebook(linear, tmp_path):
    result = leakscope.audit(*linear, sigma=0.1)
    path = result.report(tmp_path / "page.html")
    assert path.read_text().startswith("<!") and (path.stat().st_mode & 0o077) == 0
    assert "leakscope-card" in result._repr_html_() and "η" in repr(result)
    leakscope.account(sigma=2, delta=1e-5, out=tmp_path / "account")
    assert {p.name for p in (tmp_path / "account").iterdir()} == {"account.json", "report.html"}
    noise = leakscope.calibrate(epsilon=1, delta=1e-5, rate=0.1, steps=10, adjacency="add-remove")
    assert "<pre>" in noise._repr_html_()
    with pytest.raises(LeakscopeError):
        result.report(tmp_path)


def test_values_beside_a_frame_must_be_in_the_order_of_its_rows(linear):
    x, y = linear
    df = pd.DataFrame(x, columns=list("abcde"))
    series = pd.Series(y, name="t")
    expected = leakscope.audit(df, series).coefficients
    mixed = series.sample(frac=1, random_state=0)
    for call, name in ((lambda: leakscope.audit(df, mixed), "y"), (lambda: leakscope.balance(df, mixed), "y"),
                       (lambda: leakscope.audit(df, series, weights=mixed.abs()), "weights"),
                       (lambda: leakscope.audit(df, series, group=(mixed > 0).astype(str)), "group"),
                       (lambda: leakscope.audit(df, series, test=(df, mixed), sigma=0.1), "y"),
                       (lambda: leakscope.audit(df.iloc[10:], series.iloc[:-10]), "y")):
        with pytest.raises(leakscope.DataError, match=rf"{name}: its index is not that of the rows: row \d+ is \d+ there and \d+ "
                                                      rf"here: align it with {name}\.loc\[X\.index\]"):
            call()
    assert leakscope.audit(df, mixed.loc[df.index]).coefficients == expected
    # labels that have nothing in common say nothing about the order
    assert leakscope.audit(df, series.set_axis([f"r{i}" for i in range(len(y))])).coefficients == expected
    assert leakscope.audit(df, mixed.to_numpy()).coefficients != expected


def test_a_label_of_an_index_is_shown_as_people_write_it(linear):
    x, y = linear
    df = pd.DataFrame(x, index=np.array([1, 1, *range(2, len(x))]))
    with pytest.raises(leakscope.DataError, match="the index has 1 twice"):
        leakscope.audit(df, y)


def test_results_can_be_pickled(linear, tmp_path):
    x, y = linear
    df = pd.DataFrame(x, columns=list("abcde"), index=[f"p{i}" for i in range(len(x))])
    results = [
        leakscope.audit(df, pd.Series(y, index=df.index, name="t"), sigma=0.1, score=df.iloc[:5]),
        leakscope.balance(x, y, l2=0.1, iterations=2),
        leakscope.attack(np.column_stack([x, x[:, 0] > 0]), y, secret="x5", l2=0.01, sigmas=[0.1], trials=5, seed=1),
        leakscope.account(sigma=1, rate=0.01, steps=10, delta=1e-5),
        leakscope.bound(mechanism="gaussian", candidates=10, sigma=1, trials=0),
        leakscope.calibrate(epsilon=2, delta=1e-5, rate=0.01, steps=100, adjacency="add-remove"),
        leakscope.release(x, y, sigma=0.5, out=tmp_path / "release"),
    ]
    for result in results:
        again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(result))))
        assert type(again) is type(result) and again.to_json() == result.to_json() and again.document == result.document
        assert again.summary() == result.summary() and again._repr_html_() == result._repr_html_()
    audit = pickle.loads(pickle.dumps(results[0]))
    assert audit.records.equals(results[0].records) and audit.scores.equals(results[0].scores)
    assert copy.deepcopy(results[1]).weights.equals(results[1].weights)
    assert pickle.loads(pickle.dumps(results[-1])).files == results[-1].files
    audit.report(tmp_path / "report.html")
    assert "<html" in (tmp_path / "report.html").read_text()
    with pytest.raises(leakscope.LeakscopeError, match="pickled"):
        audit.save(tmp_path / "audit")


def test_a_curve_has_no_one_success():
    curve = leakscope.bound(curve="epsilon")
    with pytest.raises(AttributeError, match="figures"):
        curve.success  # noqa: B018
    assert curve["figures"]


@pytest.mark.parametrize("call, words", [
    (lambda a: a.get_epsilon(delta=-1), "delta=-1.0: expected a probability"),
    (lambda a: a.get_epsilon(delta=float("nan")), "delta=nan: expected a finite number"),
    (lambda a: a.get_epsilon(delta="1e-5"), "delta='1e-5': expected"),
    (lambda a: a.get_delta(epsilon=float("inf")), "epsilon=inf"),
    (lambda a: a.step(noise_multiplier="1", sample_rate=0.1), "noise_multiplier='1'"),
    (lambda a: a.step(noise_multiplier=float("inf"), sample_rate=0.1), "noise_multiplier=inf"),
    (lambda a: a.step(noise_multiplier=0, sample_rate=0.1), "noise_multiplier=0: expected a positive"),
    (lambda a: a.step(noise_multiplier=1, sample_rate=1.5), "sample_rate=1.5"),
    (lambda a: a.load_state_dict({}), "state: expected what state_dict gives"),
    (lambda a: a.load_state_dict({"history": [(1.0, 2.0, 3)]}), "sample_rate=2.0"),
    (lambda a: leakscope.Accountant("add"), "adjacency='add': expected 'add-remove' or 'replace'"),
])
def test_an_accountant_checks_what_it_is_told_before_any_step(call, words):
    accountant = leakscope.Accountant()
    with pytest.raises(leakscope.OptionError, match=words):
        call(accountant)
    assert accountant.history == []


def test_nothing_done_costs_nothing():
    accountant = leakscope.Accountant()
    assert accountant.get_epsilon(delta=1e-5) == 0 and accountant.get_delta(epsilon=1.0) == 0
    # δ(ε) of two equal distributions is 1 − e^ε below 0
    assert accountant.get_delta(epsilon=-2.0) == pytest.approx(1 - np.exp(-2.0))
