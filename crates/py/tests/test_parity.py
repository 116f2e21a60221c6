"""The same files give the same documents as the command line, to the last digit; golden values shared with Rust."""

import inspect
import shlex

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from conftest import command_line, document, timeless

import leakscope
from leakscope import _native, _tables

AUDIT = dict(target="dose", id="patient", group="race", l2=0.01, holdout=0.2, seed=1, sigma=0.4)


def flags(options):
    return [f"--{k.replace('_', '-')}={v}" for k, v in options.items()]


def test_an_audit_of_a_file_is_the_command_lines(patients):
    ours = leakscope.audit(patients, **AUDIT)
    theirs = document("audit", patients, *flags(AUDIT))
    assert timeless(ours.data) == timeless(theirs)


@pytest.mark.parametrize("read", [pd.read_csv, pl.read_csv, pyarrow.csv.read_csv], ids=["pandas", "polars", "pyarrow"])
def test_a_frame_gives_the_digits_of_its_file(patients, read):
    ours = timeless(leakscope.audit(read(patients), **AUDIT).data)
    theirs = timeless(document("audit", patients, *flags(AUDIT)))
    ours["data"]["files"] = theirs["data"]["files"]
    assert ours == theirs


def test_parquet_and_the_table_of_records(patients, tmp_path):
    path = tmp_path / "patients.parquet"
    pd.read_csv(patients).to_parquet(path)
    done = command_line("audit", path, *flags(AUDIT), "--out", tmp_path / "cli", "--quiet")
    assert done.returncode == 0, done.stderr
    theirs = pd.read_parquet(tmp_path / "cli" / "records.parquet")
    result = leakscope.audit(path, **AUDIT)
    ours = result.records.reset_index()
    pd.testing.assert_frame_equal(ours[list(theirs.columns)], theirs, check_exact=True, check_dtype=False)
    result.save(tmp_path / "python")
    saved = pd.read_parquet(tmp_path / "python" / "records.parquet")
    pd.testing.assert_frame_equal(saved, theirs, check_exact=True)
    names = {p.name for p in (tmp_path / "python").iterdir()}
    assert names == {p.name for p in (tmp_path / "cli").iterdir()}


def test_balance_and_attack_are_the_command_lines(patients):
    options = dict(target="dose", id="patient", l2=0.01, iterations=3)
    assert timeless(leakscope.balance(patients, **options).data) == timeless(
        document("balance", patients, *flags(options)))
    options = dict(target="dose", id="patient", l2=0.01, secret="race", trials=5, seed=3)
    assert timeless(leakscope.attack(patients, **options).data) == timeless(
        document("attack", patients, *flags(options)))


@pytest.mark.parametrize("command, options", [
    ("account", dict(sigma=1.0, rate=0.01, steps=1000, delta=1e-5)),
    ("account", dict(laplace=2.0, steps=3, delta=1e-6)),
    ("bound", dict(candidates=10, mechanism="gaussian", sigma=1.0, trials=2000, seed=5)),
    ("bound", dict(candidates=100, mechanism="renyi", alpha=1.0, epsilon=2.0)),
    ("calibrate", dict(advantage=0.1, rate=0.002, steps=1000, adjacency="replace")),
    ("calibrate", dict(success=0.3, candidates=10, encoding="one-hot")),
], ids=lambda value: value if isinstance(value, str) else "-".join(value))
def test_answers_are_the_command_lines(command, options):
    ours = getattr(leakscope, command)(**options)
    assert ours.data == document(command, *flags(options))
    assert ours.summary() == command_line(command, *flags(options)).stdout


def test_bounds_and_calibration_of_a_table_are_the_command_lines(patients):
    options = dict(target="dose", id="patient", l2=0.01, secret="race", sigma=1.0, trials=100)
    theirs = document("bound", f"--data={patients}", *flags(options))
    assert timeless(leakscope.bound(patients, **options).data) == timeless(theirs)
    of_frame = leakscope.bound(pd.read_csv(patients), **options).data
    assert [b["success"] for b in of_frame["bounds"]] == [b["success"] for b in theirs["bounds"]]
    options = dict(target="dose", id="patient", l2=0.01, eta=0.5, holdout=0.2)
    theirs = document("calibrate", f"--data={patients}", *flags(options))
    assert timeless(leakscope.calibrate(patients, **options).data) == timeless(theirs)
    options = dict(mechanism="randomised-response", secret="race", noise=0.5)
    theirs = document("bound", f"--data={patients}", *flags(options))
    assert leakscope.bound(pl.read_csv(patients), **options).data["bounds"] == theirs["bounds"]


@pytest.mark.parametrize("command", ["audit", "balance", "attack", "release", "account", "bound", "calibrate"])
def test_every_option_of_the_command_line_is_a_keyword(command):
    ours = set(inspect.signature(getattr(leakscope, command)).parameters)
    theirs = {name.replace("-", "_") for name in _native.options([command])}
    only_there = {"json", "quiet", "threads", "format", "help", "version"}
    assert theirs - ours <= only_there, "new options of the command line need a keyword"


@pytest.mark.parametrize("words, call", [
    (["--target=dose", "--sigma=-1"], dict(target="dose", sigma=-1)),
    (["--target=dos"], dict(target="dos")),
    (["--target=dose", "--scale=big"], dict(target="dose", scale="big")),
    (["--target=dose", "--holdout=2"], dict(target="dose", holdout=2)),
    (["--target=dose", "--id=patient", "--one-hot=full"], dict(target="dose", id="patient", one_hot="full")),
])
def test_messages_are_the_command_lines(patients, words, call):
    with pytest.raises(leakscope.LeakscopeError) as caught:
        leakscope.audit(patients, **call)
    done = command_line("audit", patients, *words)
    assert done.returncode == 2
    # The parser's own messages end in advice on how to call the programme, which Python users do not need.
    theirs = done.stderr.partition("error: ")[2].partition("\n\nFor more")[0]
    assert str(caught.value).split() == theirs.split()


def relative(ours, theirs):
    return np.max(np.abs(np.asarray(ours) - theirs) / np.maximum(np.abs(theirs), 1e-300))


def test_leakage_against_the_definition_in_80_digits(golden):
    for case in golden("glm_golden.json"):
        expected = case["expected"]
        x, y = np.array(case["x"]), np.array(case["y"])
        # The tolerance of crates/core/tests/golden.rs.
        tolerance = 1e-12 + 100 * expected["condition"] * 2.2e-16
        for label in ("secret", "public"):
            result = leakscope.audit(
                x, y, model=case["family"], l2=case["l2"], no_intercept=not case["intercept"], scale="none",
                sigma=case["sigma"], releases=case["releases"], label=label,
                weights=np.array(case["weight"]) if case["weight"] else None)
            records = result.records
            name = (case["name"], label)
            positive = np.array(expected[f"eta_{label}"]) > 0
            assert relative(records["eta"][positive], np.array(expected[f"eta_{label}"])[positive]) < tolerance, name
            assert relative(records["dfil"][positive], np.array(expected[f"dfil_{label}"])[positive]) < 10 * tolerance, name
            assert relative(result["dataset"]["eta"], expected[f"dataset_eta_{label}"]) < 10 * tolerance, name
            singles = np.array(expected["attribute_eta"])[:, : x.shape[1]]
            ours = records[[f"eta_x{j}" for j in range(x.shape[1])]].to_numpy()
            assert np.max(np.abs(ours - singles)) < 10 * tolerance * np.max(singles), name


def test_audits_of_frames_against_dense_jacobians(golden, patients):
    cases = golden("audit_golden.json")
    df = pd.read_csv(patients, nrows=cases["rows"])
    # The columns that crates/cli/tests/golden.rs makes, by the rules of testdata/make_audit_golden.py.
    df["high"] = np.where(df["dose"] > 30, "yes", "no")
    df["count"] = [float(round(dose)) for dose in df["dose"]]
    df["w"] = 0.5 + np.arange(len(df)) % 4 / 2
    assert len(cases["cases"]) >= 8
    for case in cases["cases"]:
        table = _tables.read(df, target="dose").table
        words = ["audit", "--id", "patient", *shlex.split(case["arguments"]), "--", "table"]
        result = leakscope.Audit(_native.audit(words, table))
        assert (result["n"], result["d"]) == (cases["rows"], case["d"]), case["name"]
        for name, value in case["coefficients"].items():
            assert result.coefficients[name] == pytest.approx(value, rel=1e-9, abs=1e-9), case["name"]
        for statistic in ("mean", "std", "min", "max", "p50", "p99"):
            assert result["records"]["eta"][statistic] == pytest.approx(case["eta"][statistic], rel=1e-9), case["name"]
        for measure in ("eta", "dfil", "loss", "gradient_norm"):
            ours = result.records[measure].to_numpy()[:: cases["every"]]
            assert np.allclose(ours, case["records"][measure], rtol=1e-9, atol=1e-12), case["name"]


def test_epsilon_against_googles_accountant(golden):
    for adjacency, sigma, rate, steps, delta, epsilon, tolerance in golden("dp_golden.json")["google_pld_epsilon"]:
        accountant = leakscope.Accountant("replace" if adjacency else "add-remove")
        accountant.history = [(sigma, rate, int(steps))]
        low, high = accountant.get_epsilon_interval(delta)
        # Google's number is an upper bound, computed on a grid of the given width.
        assert low <= epsilon + 1e-9
        assert high == pytest.approx(epsilon, rel=0.01, abs=10 * tolerance)


def test_the_version_is_the_workspaces():
    assert command_line("--version").stdout.split()[-1] == leakscope.__version__
