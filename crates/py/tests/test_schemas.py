"""Documents against the schemas in docs/schemas, by an independent validator."""

import inspect
import json
import os
import types
import typing

import jsonschema
import numpy as np
import pytest

import leakscope
from conftest import ROOT, document
from leakscope._documents import DOCUMENTS

FOLDER = ROOT / "docs" / "schemas"
SCHEMAS = {path.name.removesuffix(".schema.json"): json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}


def complaints(name, result):
    validator = jsonschema.Draft202012Validator(SCHEMAS[name])
    return [f"{'/'.join(map(str, e.absolute_path))}: {e.message}" for e in validator.iter_errors(result)]


PLAIN = {float: "number", int: "integer", str: "string", bool: "boolean", type(None): "null"}


def schema_of(kind, defined):
    """JSON Schema of a type of a document; what has a name goes to ``defined``."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return {**schema_of(inner[0], defined), "description": inner[1]}
    if origin is typing.Literal:
        return {"const": inner[0]} if len(inner) == 1 else {"enum": list(inner)}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [schema_of(one, defined) for one in inner]}
    if origin is list:
        return {"type": "array", "items": schema_of(inner[0], defined)}
    if typing.is_typeddict(kind):
        defined.setdefault(kind.__name__, None)
        if defined[kind.__name__] is None:
            defined[kind.__name__] = fields_of(kind, defined)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    return {"type": PLAIN[kind]} | ({"minimum": 0} if kind is int else {})


def fields_of(kind, defined):
    hints = typing.get_type_hints(kind, include_extras=True)
    properties = {name: schema_of(hint, defined) for name, hint in hints.items()}
    assert all(p.get("description") for p in properties.values()), kind
    return {"type": "object", "properties": properties, "required": sorted(properties), "additionalProperties": False,
            "description": inspect.cleandoc(kind.__doc__)}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_of_the_package_are_as_their_types(name):
    defined = {}
    result = fields_of(DOCUMENTS[name], defined)
    result |= {"$defs": defined, "$id": f"{name}.schema.json", "$schema": "https://json-schema.org/draft/2020-12/schema",
              "title": typing.get_args(typing.get_args(typing.get_type_hints(DOCUMENTS[name], include_extras=True)["schema"])[0])[0]}
    path = FOLDER / f"{name}.schema.json"
    if os.environ.get("LEAKSCOPE_UPDATE"):
        path.write_text(json.dumps(result, indent=2, sort_keys=True, ensure_ascii=False) + "\n")
    assert json.loads(path.read_text()) == result, "the types have changed: run this test with LEAKSCOPE_UPDATE=1"


def test_attacks_on_any_model_are_as_their_schema(linear):
    x, y = linear
    x, y = np.asarray(x, dtype=float), (np.asarray(y) > np.median(y)).astype(int)

    def guess(rows):
        p = 1 / (1 + np.exp(-np.asarray(rows, dtype=float)[:, 0]))
        return np.column_stack([1 - p, p])

    half = len(y) // 2
    for options in ({"nonmembers": (x[half:], y[half:])}, {"secret": 1}, {"nonmembers": (x[half:], y[half:]), "secret": 1, "interval": "wilson"}):
        result = leakscope.attack_model(guess, x[:half], y[:half], seed=1, **options).document
        assert complaints("model-attack", result) == []
    assert complaints("model-attack", {**result, "members": -1}) and complaints("model-attack", {**result, "new": 1})


def test_attacks_on_modules_are_as_their_schema():
    torch = pytest.importorskip("torch")
    from leakscope.torch import attack

    torch.manual_seed(0)
    module, x, y = torch.nn.Linear(4, 1), torch.randn(40, 4), torch.randn(40, 1)
    result = attack(module, torch.nn.MSELoss(), x[:20], y[:20], nonmembers=(x[20:], y[20:]), invert=2, clip=1.0, steps=3, seed=1)
    assert complaints("torch-attack", result.document) == []
    assert result.document["inversion"]["records"] == 2


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
        result = leakscope.calibrate(rate=0.01, steps=100, adjacency="add-remove", **options)
        assert complaints("calibrate", result.document) == []
    for options in ({"target_eta": 0.5}, {"target_sd": {"age": 5}}, {"success": 0.5, "secret": "vkorc1"}):
        result = leakscope.calibrate(patients, target="dose", id="patient", l2=0.1, **options)
        assert complaints("calibrate", result.document) == []


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
        result = leakscope.attack_network(network, x[20:], y[20:], method=method, seed=1, **options)
        assert complaints(f"net-{method}", result.document) == []


def test_what_is_wrong_is_found(linear):
    result = leakscope.audit(*linear, sigma=0.1).document
    assert complaints("audit", {**result, "schema": "leakscope.audit/1"}) and complaints("audit", {**result, "new": 1})
    assert complaints("audit", {name: value for name, value in result.items() if name != "for"})
    assert complaints("audit", {**result, "records": {**result["records"], "eta": None}})


def test_the_command_line_prints_the_same_kinds(patients):
    table = ["--target=dose", "--id=patient", "--l2=0.1"]
    assert complaints("audit", document("audit", patients, *table, "--sigma=1")) == []
    assert complaints("account", document("account", "--sigma=1", "--delta=1e-5")) == []
