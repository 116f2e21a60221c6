"""Language models: the same as the command line, and bad input named by its keyword."""

import inspect
import json
import re
from pathlib import Path

import pytest
from conftest import command_line, document, timeless

import leakscope
from leakscope import _native, text

MODEL = Path(__file__).parents[3] / "testdata" / "text" / "gpt2"


def test_a_canary_is_the_command_lines(tmp_path):
    ours = text.canary(MODEL, prompt="The patient was", steps=[1, 2], sigmas=[0.3, 2], trials=20, seed=3, out=tmp_path / "out")
    theirs = document("text", "canary", "--model", MODEL, "--prompt", "The patient was", "--steps", "1,2", "--sigmas", "0.3,2",
                      "--trials", "20", "--seed", "3")
    assert timeless(ours.document) == timeless(theirs)
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"canary.json", "report.html"}
    assert len(ours["points"]) == 4 and "2T/σ²" in ours.summary()


def test_candidates_are_a_list_of_strings():
    result = text.canary(MODEL, candidates=["Anna Berg", "Boris Dahl"], steps=[1], sigmas=[1.0], trials=5, seed=1)
    assert result["secret"]["candidates"] == 2 and result["secret"]["source"] == "list"


@pytest.mark.parametrize("wrong, says", [
    (dict(clip=0), "clip=0"),
    (dict(sigmas=[-1]), "sigmas=-1"),
    (dict(prior="mine"), "prior='mine'"),
    (dict(candidates=["Anna"]), "at least 2"),
    (dict(prompt=""), "prompt"),
], ids=lambda value: "-".join(value) if isinstance(value, dict) else "")
def test_bad_input_names_the_keyword(wrong, says):
    with pytest.raises(leakscope.OptionError, match=says):
        text.canary(MODEL, **{"trials": 1, **wrong})


TEXTS = ["The patient was given 5 mg of warfarin.", "The code of Anna is 4812."]


def test_an_audit_is_the_command_lines(tmp_path):
    ours = text.audit(TEXTS, MODEL, sigma=2, clip=1, trace=4, eta=False, seed=3, secret="4812", secret_pattern="####",
                      out=tmp_path / "python")
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(TEXTS))
    theirs = document("text", "audit", file, "--model", MODEL, "--sigma", "2", "--clip", "1", "--trace", "4", "--no-eta", "--seed",
                      "3", "--secret", "4812", "--secret-pattern", "####")
    theirs["files"] = []
    assert timeless(ours.document) == timeless(theirs)
    assert len(ours.records) == 2 and {"loss", "gradient_norm", "dfil"} <= set(ours.records)
    assert {p.name for p in (tmp_path / "python").iterdir()} == {"audit.json", "records.parquet", "report.html"}


@pytest.mark.parametrize("wrong, says", [
    (dict(texts=[""]), "empty"),
    (dict(texts=["word and " * 80]), "long='split'|long=\"split\""),
    (dict(sigma=0), "sigma=0"),
    (dict(secret="9", secret_pattern="####"), "none of the texts"),
], ids=lambda value: "-".join(value) if isinstance(value, dict) else "")
def test_bad_texts_are_named(wrong, says):
    with pytest.raises(leakscope.LeakscopeError, match=says):
        text.audit(**{"texts": TEXTS, "model": MODEL, "eta": False, **wrong})


NOTES = [f"The patient number {i} was given {i} mg of warfarin." for i in range(1, 9)]


def test_a_run_is_the_command_lines_and_its_model_is_read_again(tmp_path):
    options = dict(layers="adapters", rank=2, sigma=1, clip=1, steps=4, batch=3, seed=3, track="every", not_private_noise_from_seed=True)
    ours = text.train(NOTES, MODEL, out=tmp_path / "python", test=TEXTS, **options)
    file, held = tmp_path / "notes.txt", tmp_path / "held.txt"
    file.write_text("\n".join(NOTES))
    held.write_text("\n".join(TEXTS))
    flags = [f"--{k.replace('_', '-')}" if v is True else f"--{k.replace('_', '-')}={v}" for k, v in options.items()]
    theirs = document("text", "train", file, "--model", MODEL, "--test", held, "--out", tmp_path / "cli", *flags)
    mine = json.loads(json.dumps(ours.document))
    for one in (mine, theirs):
        one["data"]["files"] = []
        one["text"]["holdout"]["files"] = []
        one.pop("tables")
    assert timeless(mine) == timeless(theirs)
    weights = "model/model.safetensors"
    assert (tmp_path / "python" / weights).read_bytes() == (tmp_path / "cli" / weights).read_bytes()
    assert ours.epsilon() == float("inf") and len(ours.records) == len(NOTES)
    again = text.audit(TEXTS, ours.model, trace="skip", eta=False)
    first = text.audit(TEXTS, MODEL, trace="skip", eta=False)
    assert list(again.records["loss"]) != list(first.records["loss"])
    assert "perplexity" in ours.summary()


def test_users_are_promised_to_as_a_whole(tmp_path):
    users = [f"user {i % 3}" for i in range(len(NOTES))]
    run = text.train(NOTES, MODEL, out=tmp_path, users=users, epsilon=3, clip=1, steps=3, rate=0.5, batch=2)
    assert run["data"]["records"] == 3 and run["text"]["unit"] == "user"
    assert run["privacy"]["adjacency"] == "add-remove" and run.epsilon() <= 3
    assert run.epsilon(1e-5) == pytest.approx(run.epsilon(), rel=1e-3)
    more = text.train(NOTES, MODEL, out=tmp_path, users=users, sigma=run["privacy"]["sigma"], clip=1, steps=5, rate=0.5, batch=2, resume=True)
    assert more["steps"] == 5 and more.epsilon() > run.epsilon()


@pytest.mark.parametrize("wrong, says", [
    (dict(users=["a"]), "users"),
    (dict(sigma=0), "sigma=0"),
    (dict(texts=["", "a b"]), "empty"),
    (dict(batch=9), "batch=9"),
    (dict(users=["a"] * 8, sigma=1, track="every"), "track"),
], ids=lambda value: "-".join(value) if isinstance(value, dict) else "")
def test_bad_runs_are_named(tmp_path, wrong, says):
    with pytest.raises(leakscope.LeakscopeError, match=says):
        text.train(**{"texts": NOTES, "model": MODEL, "out": tmp_path, "batch": 2, **wrong})


@pytest.mark.parametrize("name, others", [
    ("audit", {"texts", "list", "field", "secrets"}),
    ("canary", {"list", "candidates"}),
    ("train", {"texts", "list", "field", "user_field", "test_list", "format"}),
])
def test_every_field_and_option_is_a_keyword(name, others):
    parameters = inspect.signature(getattr(text, name)).parameters
    for field, default in _native.defaults(f"text {name}").items():
        if field in others:
            continue
        assert field in parameters, field
        ours = parameters[field].default
        if ours is not inspect.Parameter.empty and field not in ("trace", "users", "test", "sigmas"):
            assert (list(ours) if isinstance(ours, tuple) else ours) == json.loads(default), field
    help_text = command_line("text", name, "--help").stdout
    theirs = {option.replace("-", "_") for option in re.findall(r"^ +(?:-\w, )?--([a-z0-9-]+)", help_text, re.M)}
    only_there = {"json", "quiet", "threads", "format", "help", "version", "config", "open", "field"}
    renamed = {"no_eta": "eta", "no_texts": "show", "user_field": "users"}
    assert {renamed.get(option, option) for option in theirs} - set(parameters) <= only_there
    for parameter in parameters:
        assert re.search(rf"^{parameter} : .+\n    \S", getattr(text, name).__doc__, re.M), parameter
