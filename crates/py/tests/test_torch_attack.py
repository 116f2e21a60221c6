"""Attacks on torch modules, against what can be computed without them; runs where torch is installed."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: leakscope.torch is not tested here (test-torch.sh does)")

import leakscope  # noqa: E402
import leakscope.torch  # noqa: E402

nn = torch.nn
F64 = torch.float64


def linear(n=6, d=4):
    torch.manual_seed(0)
    return nn.Linear(d, 1).double(), 2 * torch.randn(n, d, dtype=F64) + 1, 3 * torch.randn(n, 1, dtype=F64)


def test_a_linear_models_gradient_is_its_record():
    """The gradient of a linear model is (r x, r): x is a ratio, and the attack finds it where noise is small."""
    module, x, y = linear()
    result = leakscope.torch.attack(module, nn.MSELoss(), x, y, invert=6, sigma=1e-3, steps=500, starts=2, seed=1)
    # the search may end in another minimum for one of them
    near = result.records["squared_error"] < 1e-3 * result.records["baseline"]
    assert near.sum() >= 5, result.records
    assert result["inversion"]["closer_than_the_mean"]["value"] >= 5 / 6


def test_noise_leaves_the_mean():
    module, x, y = linear(20)
    result = leakscope.torch.attack(module, nn.MSELoss(), x, y, invert=20, sigma=1e4, steps=100, seed=1)
    i = result["inversion"]
    assert i["squared_error"]["value"] == pytest.approx(i["baseline"], rel=0.05)
    assert "whoever guesses the mean" in result.summary()


@pytest.mark.parametrize("kind", ["hard", "gelu"])
def test_a_clip_hides_the_length_alone(kind):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3)).double()
    x, y = torch.randn(5, 5, dtype=F64), torch.tensor([0, 1, 2, 0, 1])
    result = leakscope.torch.attack(module, nn.CrossEntropyLoss(), x, y, invert=[4, 1], clip=0.1, clip_kind=kind, sigma=1e-4, steps=400,
                                   starts=2, seed=3)
    assert list(result.records.index) == [4, 1]
    assert (result.records["squared_error"] < 0.2 * result.records["baseline"]).all(), result.records


def test_members_of_an_overfitted_model_are_found():
    torch.manual_seed(0)
    x, y = torch.randn(120, 10), torch.randint(0, 2, (120,))
    module = nn.Sequential(nn.Linear(10, 128), nn.ReLU(), nn.Linear(128, 2))
    optimizer = torch.optim.Adam(module.parameters(), lr=0.01)
    for _ in range(150):
        optimizer.zero_grad()
        nn.functional.cross_entropy(module(x[:60]), y[:60]).backward()
        optimizer.step()
    result = leakscope.torch.attack(module, nn.CrossEntropyLoss(), x[:60], y[:60], nonmembers=(x[60:], y[60:]), seed=0)
    assert result["membership"]["accuracy"]["low"] > 0.55 and result["membership"]["auc"] > 0.7
    fresh = leakscope.torch.attack(nn.Linear(10, 2), nn.CrossEntropyLoss(), x[:60], y[:60], nonmembers=(x[60:], y[60:]), seed=0)
    assert fresh["membership"]["accuracy"]["low"] <= 0.5


@pytest.mark.parametrize("options, words", [
    ({}, "name what to play"), ({"invert": [99]}, "invert|records"), ({"invert": 2, "sigma": 0}, "sigma"),
    ({"nonmembers": 3}, "a pair"), ({"invert": 1, "confidence": 2}, "confidence"), ({"invert": 1, "steps": 0}, "steps"),
])
def test_bad_options(options, words):
    module, x, y = linear()
    with pytest.raises(leakscope.LeakscopeError, match=words):
        leakscope.torch.attack(module, nn.MSELoss(), x, y, **options)


def test_tokens_are_not_inverted():
    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.word, self.out = nn.Embedding(5, 3), nn.Linear(3, 2)

        def forward(self, ids):
            return self.out(self.word(ids).mean(dim=1))

    with pytest.raises(leakscope.OptionError, match="tokens"):
        leakscope.torch.attack(Words(), nn.CrossEntropyLoss(), torch.randint(0, 5, (3, 4)), torch.tensor([0, 1, 0]), invert=1)
