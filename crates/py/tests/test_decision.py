"""What a page decides, from Python: the breast cancer table, options as keywords, a release withdrawn."""

import json
import re

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

import leakscope


def test_the_breast_cancer_table_is_not_green_at_a_noise_that_gives_the_diagnosis_away(tmp_path):
    table = load_breast_cancer(as_frame=True).frame
    table["target"] = table["target"].map({0: "malignant", 1: "benign"})
    result = leakscope.audit(table, target="target", model="logistic", l2=0.1, sigma=0.06)
    label = next(t for t in result.document["tell"]["attributes"] if t.get("label"))
    # Told apart in 96.8% of cases, where η says that an estimate of the class is off by ±0.26.
    assert 0.96 < label["worst"] < 0.97
    assert "NOT PROTECTED" in result.summary() and "benign from malignant" in " ".join(result.summary().split())
    result.report(tmp_path / "page.html")
    assert '<section class="verdict bad"' in (tmp_path / "page.html").read_text()


def test_options_are_keywords_on_pages_and_in_summaries(tmp_path):
    rng = np.random.default_rng(3)
    table = {"Patient No": rng.integers(0, 999, 80), "age": rng.normal(50, 9, 80), "y": rng.normal(size=80)}
    pandas = pytest.importorskip("pandas")
    result = leakscope.audit(pandas.DataFrame(table), target="y", l2=0.1)
    result.report(tmp_path / "page.html")
    for text in ((tmp_path / "page.html").read_text(), result.summary()):
        words = re.sub(r"</?(span|code)[^>]*>", "", " ".join(text.split()))
        assert "⟨" not in text and "--drop" not in text and "among drop" in words
    assert "among `drop`" in json.dumps(result.document, ensure_ascii=False)


def test_a_release_is_withdrawn_on_record(tmp_path):
    rng = np.random.default_rng(4)
    x = rng.normal(size=(100, 2))
    y = x[:, 0] + rng.normal(size=100)
    for _ in range(2):
        leakscope.release(x, y, sigma=0.5, out=tmp_path)
    left = leakscope.withdraw(tmp_path, 1, "tried out, never sent")
    assert left["releases"] == 1 and left["kept_in"] == "private/withdrawn-1"
    assert not (tmp_path / "release-1").exists()
    with pytest.raises(leakscope.LeakscopeError, match="withdrawn before"):
        leakscope.withdraw(tmp_path, 1, "again")
    with pytest.raises(leakscope.LeakscopeError, match="on record"):
        leakscope.withdraw(tmp_path, 2, "")
