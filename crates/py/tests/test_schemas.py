"""Documents against the schemas in docs/schemas, by an independent validator."""

import json

import jsonschema
import numpy as np
import pytest

import leakscope
from conftest import ROOT, document

FOLDER = ROOT / "docs" / "schemas"
SCHEMAS = {path.name.removesuffix(".schema.json"): json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}


def complaints(name, found):
    validator = jsonschema.Draft202012Validator(SCHEMAS[name])
    return [f"{'/'.join(map(str, e.absolute_path))}: {e.message}" for e in validator.iter_errors(found)]


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_one(name):
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])
    assert SCHEMAS[name]["title"] and SCHEMAS[name]["description"] and SCHEMAS[name]["additionalProperties"] is False


def test_results_of_tables(linear, patients, tmp_path):
    x, y = linear
    audit = leakscope.audit(patients, target="dose", id="patient", l2=0.1, holdout=0.2, seed=1, group="race", sigma=1.0,
                            score=patients, fail_above={"eta": 1.0}, secret="vkorc1")
    assert complaints("audit", audit.document) == []
    shaped = leakscope.audit(patients, target="dose", id="patient", drop="cyp2c9", target_eta=1.0, noise_shape="optimal")
    assert complaints("audit", shaped.document) == []
    assert complaints("balance", leakscope.balance(x, y, iterations=3, l2=0.1).document) == []
    assert complaints("attack", leakscope.attack(patients, target="dose", id="patient", l2=0.1, secret="vkorc1", trials=2, sigmas=[1.0],
                                                 balance=2, holdout=0.2, seed=1).document) == []
    release = leakscope.release(x, y, target_eta=0.5, out=tmp_path / "r")
    assert complaints("release-owner", release.document) == []
    published = {p.name: json.loads(p.read_text()) for p in release.files if p.suffix == ".json" and "private" not in p.parts}
    assert complaints("release", published["release.json"]) == [] and complaints("model", published["model.json"]) == []
    assert complaints("ledger", json.loads((tmp_path / "r" / "private" / "ledger.json").read_text())) == []
    assert complaints("withdraw", leakscope.withdraw(tmp_path / "r", 1, "never sent")) == []
    assert complaints("compare", leakscope.compare(audit, audit, names=["a", "b"], fail_on="red").document) == []


def test_answers(patients):
    assert complaints("account", leakscope.account(step=[{"sigma": 1, "rate": 0.1, "steps": 9}, {"laplace": 5}], delta=1e-5).document) == []
    assert complaints("bound", leakscope.bound(candidates=10, mechanism="gaussian", sigma=1.0, trials=100).document) == []
    assert complaints("bound", leakscope.bound(patients, target="dose", id="patient", secret="vkorc1", sigma=1.0, trials=100, l2=0.1,
                                               attacks=True, noise_vectors=3).document) == []
    assert complaints("bound", leakscope.bound(eta=2.0, prior_sd=1.0).document) == []
    for options in ({"epsilon": 1, "delta": 1e-5}, {"advantage": 0.1}, {"tpr": 0.1, "fpr": 0.01}):
        found = leakscope.calibrate(rate=0.01, steps=100, adjacency="add-remove", **options)
        assert complaints("calibrate", found.document) == []
    for options in ({"target_eta": 0.5}, {"target_sd": {"age": 5}}, {"success": 0.5, "secret": "vkorc1"}):
        found = leakscope.calibrate(patients, target="dose", id="patient", l2=0.1, **options)
        assert complaints("calibrate", found.document) == []


def test_results_of_networks():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 4)), rng.integers(0, 2, 40)
    network = leakscope.Network("linear", input=(4,), outputs=2, seed=1)
    run = network.train(x, y, epsilon=4, delta=1e-3, clip=1.0, steps=4, batch=10, lr=0.1, track=True)
    assert complaints("net-training", run.document) == []
    assert complaints("net-audit", network.audit(x, y, trace="elements", plis=True, eta=True, seed=1, score=(x[:5], y[:5])).document) == []
    assert complaints("network", json.loads(network._native.spec())) == []
    attacks = {"inversion": dict(records=2, iterations=3, sigmas=[0, 0.1], clip=1.0), "membership": dict(test=(x[:20], y[:20]), shadows=0)}
    for method, options in attacks.items():
        found = leakscope.attack_network(network, x[20:], y[20:], method=method, seed=1, **options)
        assert complaints(f"net-{method}", found.document) == []


def test_what_is_wrong_is_found(linear):
    found = leakscope.audit(*linear, sigma=0.1).document
    assert complaints("audit", {**found, "schema": "leakscope.audit/1"}) and complaints("audit", {**found, "new": 1})
    assert complaints("audit", {name: value for name, value in found.items() if name != "for"})
    assert complaints("audit", {**found, "records": {**found["records"], "eta": None}})


def test_the_command_line_prints_the_same_kinds(patients):
    table = ["--target=dose", "--id=patient", "--l2=0.1"]
    assert complaints("audit", document("audit", patients, *table, "--sigma=1")) == []
    assert complaints("account", document("account", "--sigma=1", "--delta=1e-5")) == []
