"""The same files give the same documents as the command line, to the last digit; golden values shared with Rust."""

import inspect
import json
import re
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
from leakscope import _native

#: what only an audit is asked
AUDIT_ALONE = {"coefficients", "noise", "releases", "score", "prior_sd", "unit", "fail_above", "secret", "tell", "protect_at",
               "tell_budget", "scaling", "max_classes", "redact"}
AUDIT = dict(target="dose", id="patient", group="race", l2=0.01, holdout=0.2, seed=1, sigma=0.4)


def flags(options):
    return [f"--{k.replace('_', '-')}={v}" for k, v in options.items()]


def test_an_audit_of_a_file_is_the_command_lines(patients):
    ours = leakscope.audit(patients, **AUDIT)
    theirs = document("audit", patients, *flags(AUDIT))
    assert timeless(ours.document) == timeless(theirs)


@pytest.mark.parametrize("read", [pd.read_csv, pl.read_csv, pyarrow.csv.read_csv], ids=["pandas", "polars", "pyarrow"])
def test_a_frame_gives_the_digits_of_its_file(patients, read):
    ours = timeless(leakscope.audit(read(patients), **AUDIT).document)
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
    assert timeless(leakscope.balance(patients, **options).document) == timeless(
        document("balance", patients, *flags(options)))
    options = dict(target="dose", id="patient", l2=0.01, secret="race", trials=5, seed=3)
    assert timeless(leakscope.attack(patients, **options).document) == timeless(
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
    assert ours.document == document(command, *flags(options))
    # each names options as its reader writes them
    assert ours.summary() == command_line(command, *flags(options)).stdout.replace("(--adjacency)", "(adjacency)")


def test_bounds_and_calibration_of_a_table_are_the_command_lines(patients):
    options = dict(target="dose", id="patient", l2=0.01, secret="race", sigma=1.0, trials=100)
    theirs = document("bound", f"--data={patients}", *flags(options))
    assert timeless(leakscope.bound(patients, **options).document) == timeless(theirs)
    of_frame = leakscope.bound(pd.read_csv(patients), **options).document
    assert [b["success"] for b in of_frame["bounds"]] == [b["success"] for b in theirs["bounds"]]
    options = dict(target="dose", id="patient", l2=0.01, target_eta=0.5, holdout=0.2)
    theirs = document("calibrate", f"--data={patients}", *flags(options))
    assert timeless(leakscope.calibrate(patients, **options).document) == timeless(theirs)
    options = dict(mechanism="randomised-response", secret="race", noise=0.5)
    theirs = document("bound", f"--data={patients}", *flags(options))
    assert leakscope.bound(pl.read_csv(patients), **options).document["bounds"] == theirs["bounds"]


@pytest.mark.parametrize("options", [
    dict(noise_shape="shaped", target_eta=2.0),
    dict(noise_shape="optimal", protect="age", target_eta=0.5, holdout=0.25, seed=1),
], ids=["shaped", "optimal"])
def test_noise_with_a_shape_is_the_command_lines(patients, options):
    options = dict(target="dose", id="patient", **options)
    ours = leakscope.audit(patients, **options)
    assert timeless(ours.document) == timeless(document("audit", patients, *flags(options)))
    assert ours["noise"]["gain"] > 1 and ours["noise"]["source"]["kind"] == "records"
    theirs = document("calibrate", f"--data={patients}", *flags(options))
    assert timeless(leakscope.calibrate(patients, **options).document) == timeless(theirs)
    errors = ours.standard_errors
    assert (errors["standard_error"] >= errors["noise_error"]).all()
    spread = [ours["noise"]["deviations"][name] for name in ours["noise"]["coefficients"]]
    np.testing.assert_allclose(np.sqrt(np.diag(ours.noise_covariance)), spread, rtol=1e-12)


def test_a_shape_may_come_from_a_public_frame(patients):
    table = pd.read_csv(patients).set_index("patient")
    private, public = table[:60], table[60:]
    options = dict(target="dose", noise_shape="shaped", target_eta=0.1, drop=["race", "vkorc1", "cyp2c9", "amiodarone", "enzyme_inducer"])
    ours = leakscope.audit(private, shape_from=public, **options)
    assert ours["noise"]["source"]["kind"] == "table" and ours["noise"]["covariance_information"] == 0
    assert ours["records"]["eta"]["max"] <= 0.1
    alone = leakscope.audit(private, **options)
    assert alone["noise"]["shape"] == "isotropic" and "safer" in alone["noise"]["instead"]


#: functions, the requests that their keywords fill, and what no keyword says
FUNCTIONS = {
    "audit": (["table"], {"read", "roles", "two_class_coded", "paths"}),
    "balance": (["table", "balance"], {"paths", "two_class_coded", *AUDIT_ALONE} - {"sigma", "redact"}),
    "attack": (["table", "attack"], {"paths", "two_class_coded", *AUDIT_ALONE} - {"secret", "redact"}),
    "release": (["table", "release"], {"paths", "two_class_coded", *AUDIT_ALONE, "test", "holdout", "seed"}),
    "account": (["account", "step"], set()),
    "bound": (["bound", "table"], {"paths", "two_class_coded", *AUDIT_ALONE, "table", "column", "over_noise"}
              - {"secret", "prior_sd", "redact"}),
    "calibrate": (["calibrate", "table"], {"paths", "two_class_coded", *AUDIT_ALONE, "table"} - {"secret"}),
    "compare": (["compare"], set()),
    "net audit": (["net audit"], {"model", "data", "limit", "normalize", "format", "precision", "device"}),
    # the loss is that of a preset: a network over arrays has its own
    "net train": (["net train"], {"budgets", "table", "data", "test", "loss", "public", "network", "outputs", "checkpoint_every", "resume", "limit", "normalize",
                                  "format", "precision", "device", "public_training", "perturb_training"}),
}
#: fields whose keywords are several, or have another default: none is said, where the library has a value
SEVERAL = {"noise": ["sigma"], "clamp": ["min_weight", "max_weight"], "trace": ["trace"], "label": ["label"]}
OTHER_DEFAULTS = {"target", "results", "fail_on", "delta", "attacks", "steps", "secret", "records", "test", "score", "prior_sd", "unit", "fail_above",
                  "coefficients", "adjacency", "noise", "clamp", "trace", "label", "header", "decimal", "schema", "bounds", "levels",
                  "tell", "plis", "tell_budget"}


def function(name):
    return getattr(leakscope, name) if " " not in name else getattr(leakscope.Network, name.split()[1])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_field_of_a_request_is_a_keyword_with_its_default(name):
    parameters = inspect.signature(function(name)).parameters
    requests, no_keyword = FUNCTIONS[name]
    fields = [(r, f, json.loads(d)) for r in requests for f, d in _native.defaults(r).items()]
    for request, field, default in fields:
        # what an opened pipeline took from the rows is known to the adapter alone
        if field in no_keyword or field in ("scales", "intercept_share", "read_off_elsewhere"):
            continue
        if (request, field) == ("table", "encoding") and name in ("bound", "calibrate"):
            field = "text_encoding"
        keywords = SEVERAL.get(field, [field])
        assert set(keywords) <= set(parameters), f"{field} of the request needs a keyword"
        ours = parameters[field].default if field in parameters else None
        # Where a table is optional, its split has the seed of the draws.
        of_draws = request == "table" and field == "seed" and name in ("bound", "calibrate")
        if field not in OTHER_DEFAULTS and not of_draws:
            assert (list(ours) if isinstance(ours, tuple) else ours) == default, field


@pytest.mark.parametrize("name", FUNCTIONS)
def test_help_suffices(name):
    options = function(name)
    for parameter in inspect.signature(options).parameters.values():
        if parameter.name != "self":
            assert re.search(rf"^{parameter.name} : .+\n    \S", options.__doc__, re.M), f"{parameter.name} is not explained"
            assert parameter.annotation is not parameter.empty
    assert "--" not in re.sub("-{3,}", "", options.__doc__), "no flags of a command line"
    assert "Returns\n-------" in options.__doc__ and options.__doc__.index("Parameters\n") < options.__doc__.index("Returns\n")


@pytest.mark.parametrize("command", ["audit", "balance", "attack", "release", "account", "bound", "calibrate", "compare", "net audit",
                                     "net train"])
def test_every_option_of_the_command_line_is_a_keyword(command):
    ours = set(inspect.signature(function(command)).parameters)
    text = command_line(*command.split(), "--help").stdout
    theirs = {name.replace("-", "_") for name in re.findall(r"^ +(?:-\w, )?--([a-z0-9-]+)", text, re.M)}
    assert len(theirs) > 5
    renamed = {"no_intercept": "fit_intercept", "no_pictures": "pictures", "no_header": "header"}
    only_there = {"json", "quiet", "threads", "format", "help", "version", "data", "config", "open",
                  "machines", "patience"}  # leakscope.distributed, dask, spark
    if command == "compare":
        only_there |= {"summary", "summary_out"}  # Comparison.pipeline
    if " " in command:
        only_there |= {"model", "limit", "normalize", "precision", "device", "network", "outputs", "test", "checkpoint_every", "resume",
                       "loss", "public"}
    if command == "net train":
        # arrays have no columns; tables are trained on by train_network
        ours |= set(inspect.signature(leakscope.train_network).parameters)
        only_there |= {"group", "weights", "text_encoding"}  # of files alone
    assert {renamed.get(name, name) for name in theirs} - ours <= only_there, "new options of the command line need a keyword"


@pytest.mark.parametrize("words, theirs, call, ours", [
    (["--target=dose", "--sigma=-1"], "--sigma: -1: expected a positive number",
     dict(target="dose", sigma=-1), "sigma=-1: expected a positive number"),
    (["--target=dos"], "--target: there is no column `dos`", dict(target="dos"), "target: there is no column `dos`"),
    (["--target=dose", "--holdout=2"], "--holdout 2: expected a share between 0 and 1, such as 0.2",
     dict(target="dose", holdout=2), "holdout=2: expected a share between 0 and 1, such as 0.2"),
    (["--target=dose", "--id=patient", "--one-hot=full"], "--drop, use --one-hot drop-last, or add a penalty, for example --l2 1e-3",
     dict(target="dose", id="patient", one_hot="full"), 'drop, use one_hot="drop-last", or add a penalty, for example l2=1e-3'),
    (["--target=age", "--id=patient", "--model=logistic"], "--model softmax",
     dict(target="age", id="patient", model="logistic"), 'model="softmax"'),
])
def test_messages_are_the_command_lines_in_python(patients, words, theirs, call, ours):
    with pytest.raises(leakscope.LeakscopeError) as caught:
        leakscope.audit(patients, **call)
    message, done = str(caught.value), command_line("audit", patients, *words)
    assert ours in message and "--" not in message
    assert done.returncode == 2 and theirs in done.stderr
    assert message.replace(ours, "") == done.stderr.partition("error: ")[2].rstrip().replace(theirs, "")


def relative(ours, theirs):
    return np.max(np.abs(np.asarray(ours) - theirs) / np.maximum(np.abs(theirs), 1e-300))


def test_leakage_against_the_definition_in_80_digits(golden):
    for case in golden("glm_golden.json"):
        expected = case["expected"]
        x, y = np.array(case["x"]), np.array(case["y"])
        # The tolerance of crates/core/tests/golden.rs.
        tolerance = 1e-12 + 100 * expected["condition"] * 2.2e-16
        # Weights are divided by their mean, the penalty is not.
        l2 = case["l2"] / np.mean(case["weight"] or [1.0])
        for label in ("secret", "public"):
            result = leakscope.audit(
                x, y, model=case["family"], l2=l2, fit_intercept=case["intercept"], scale="none",
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


def keywords(line):
    """The words of a command line as keywords."""
    words, result = shlex.split(line), {}
    while words:
        name = words.pop(0).removeprefix("--").replace("-", "_")
        if name == "no_intercept":
            result["fit_intercept"] = False
            continue
        value = words.pop(0)
        if name in ("l2", "sigma", "releases", "pca"):
            value = json.loads(value)
        elif name == "drop":
            value = value.split(",")
        elif name == "prior_sd":
            value = {value.partition("=")[0]: float(value.partition("=")[2])}
        result[name] = value
    return result


def test_audits_of_frames_against_dense_jacobians(golden, patients):
    cases = golden("audit_golden.json")
    df = pd.read_csv(patients, nrows=cases["rows"])
    # The columns that crates/cli/tests/golden.rs makes, by the rules of testdata/make_audit_golden.py.
    df["high"] = np.where(df["dose"] > 30, "yes", "no")
    df["count"] = [float(round(dose)) for dose in df["dose"]]
    df["w"] = 0.5 + np.arange(len(df)) % 4 / 2
    assert len(cases["cases"]) >= 8
    for case in cases["cases"]:
        options = {"scaling": "given", **keywords(case["arguments"])}
        if "weights" in options:
            # Weights are divided by their mean, the penalty is not.
            options["l2"] /= df["w"].mean()
        result = leakscope.audit(df, id="patient", **options)
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
