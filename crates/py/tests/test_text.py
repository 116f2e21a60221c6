"""Language models: the same as the command line, and bad input named by its keyword."""

from pathlib import Path

import pytest
from conftest import document, timeless

import leakscope
from leakscope import text

MODEL = Path(__file__).parents[3] / "testdata" / "text" / "gpt2"


def test_a_canary_is_the_command_lines(tmp_path):
    ours = text.canary(MODEL, prompt="The patient was", steps=[1, 2], sigmas=[0.3, 2], trials=20, seed=3, out=tmp_path / "out")
    theirs = document("text", "canary", "--model", MODEL, "--prompt", "The patient was", "--steps", "1,2", "--sigmas", "0.3,2",
                      "--trials", "20", "--seed", "3")
    assert timeless(ours.document) == timeless(theirs)
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"canary.json", "report.html"}
    assert len(ours["points"]) == 4 and "2T/σ²" in ours.summary()


def test_candidates_are_a_list_of_strings():
    found = text.canary(MODEL, candidates=["Anna Berg", "Boris Dahl"], steps=[1], sigmas=[1.0], trials=5, seed=1)
    assert found["secret"]["candidates"] == 2 and found["secret"]["source"] == "list"


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
