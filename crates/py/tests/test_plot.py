"""``result.plot``: what is drawn is what the document holds."""

import builtins

import numpy as np
import pytest

import leakscope

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def audit(request):
    path = leakscope.__file__ and request.getfixturevalue("patients")
    return leakscope.audit(path, target="dose", id="patient", l2=0.1, sigma=1.0, group="race", holdout=0.2, seed=1)


def test_charts_of_an_audit(audit):
    assert dir(audit.plot) == ["attributes", "groups", "histogram", "utility"]
    ax = audit.plot.histogram()
    counts = ax.patches[0].get_data().values
    assert counts.sum() == audit["n"] and "η" in ax.get_xlabel()
    assert audit.plot.histogram(bins=5).patches[0].get_data().values.size <= 5
    ax = audit.plot.attributes(most=3)
    largest = sorted((a["eta_max"] for a in audit["attributes"]), reverse=True)[:3]
    assert [bar.get_width() for bar in ax.patches] == largest[::-1]
    assert {t.get_text().rsplit(" (")[0] for t in audit.plot.groups().get_yticklabels()} == {g["name"] for g in audit["groups"]}
    ax = audit.plot.utility()
    x, y = ax.lines[0].get_data()
    assert list(y) == [p["value"] for p in audit["utility"]["points"]] and ax.get_xscale() == "log"


def test_they_draw_where_they_are_told_to(audit):
    _, axes = plt.subplots(1, 2)
    assert audit.plot.histogram(ax=axes[1]) is axes[1]
    assert axes[1].patches and not axes[0].patches


def test_charts_of_attacks_and_figures(patients):
    attack = leakscope.attack(patients, target="dose", id="patient", l2=0.1, secret="vkorc1", trials=5, sigmas=[0.1, 1.0], seed=1)
    ax = attack.plot.attacks()
    names = {r["attack"].replace("-", " ") for r in attack["results"]}
    assert names < {t.get_text() for t in ax.get_legend().get_texts()}
    account = leakscope.account(sigma=2, delta=1e-5)
    ax = account.plot.figure()
    assert [line.get_label() for line in ax.lines[:2]] == [s["name"] for s in account["figures"][0]["series"]]
    with pytest.raises(leakscope.OptionError, match="trade-off"):
        account.plot.figure("no such")


def test_charts_of_networks():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 4)), rng.integers(0, 2, 40)
    network = leakscope.Network("linear", input=(4,), outputs=2, seed=1)
    run = network.train(x, y, epsilon=4, delta=1e-3, clip=1.0, steps=6, batch=10, lr=0.1, track=True)
    assert "losses" in dir(run.plot) and run.plot.losses().lines
    if "dfil" in dir(run.plot):
        assert run.plot.dfil().lines
    result = network.audit(x, y, plis=True, seed=1)
    ax = result.plot.plis(3)
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], result.plis_maps[3])
    with pytest.raises(leakscope.OptionError, match="40 records were measured"):
        result.plot.plis(40)
    pictures = rng.normal(size=(10, 6, 6, 1))
    seen = leakscope.Network("linear", input=(6, 6, 1), outputs=2, seed=1).audit(pictures, rng.integers(0, 2, 10), plis=True, seed=1)
    assert seen.plot.plis().images[0].get_array().shape == (6, 6)


def test_what_a_result_has_not_is_said(audit):
    with pytest.raises(leakscope.LeakscopeError, match=r"Audit has nothing for plot.dfil\(\): it has plot.attributes\(\)"):
        audit.plot.dfil()
    noise = leakscope.calibrate(epsilon=1, delta=1e-5, rate=0.1, steps=10, adjacency="add-remove")
    with pytest.raises(leakscope.LeakscopeError, match="no charts"):
        noise.plot.histogram()


def test_without_matplotlib(audit, monkeypatch):
    real = builtins.__import__

    def missing(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        audit.plot.histogram()
    assert dir(audit.plot), "what there is to draw is known all the same"
