"""torch modules against torch's own derivatives; runs where torch is installed."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: leakscope.torch is not tested here")

import leakscope  # noqa: E402
import leakscope.torch  # noqa: E402

nn = torch.nn


def per_sample_jacobian(module, loss, x, y):
    """∂g/∂x of one record by torch.func, g the gradient of its loss by all parameters."""
    parameters = {k: v.detach() for k, v in module.named_parameters()}

    def gradient(record):
        def of(p):
            return loss(torch.func.functional_call(module, p, (record[None],)), y[None])

        return torch.cat([g.reshape(-1) for g in torch.func.grad(of)(parameters).values()])

    j = torch.func.jacrev(gradient)(x)
    return j.reshape(j.shape[0], -1).detach().numpy(), gradient(x).detach().numpy()


def cases():
    torch.manual_seed(0)
    norm = nn.BatchNorm2d(4)
    norm.running_mean += 0.1
    norm.running_var *= 1.3
    return {
        "dense": (nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)), (6,)),
        "layer norm, gelu": (nn.Sequential(nn.Linear(6, 5), nn.LayerNorm(5), nn.GELU(), nn.Linear(5, 3)), (6,)),
        "convolutions": (nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1), norm, nn.Sigmoid(), nn.AvgPool2d(2), nn.Sequential(nn.Conv2d(4, 3, 2), nn.Tanh()),
            nn.Dropout(), nn.Flatten(), nn.Linear(12, 3)), (2, 6, 6)),
        "max pool": (nn.Sequential(nn.Conv2d(1, 2, 3, bias=False), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Identity(),
                                   nn.Linear(8, 3)), (1, 6, 6)),
    }


@pytest.mark.parametrize("name", ["dense", "layer norm, gelu", "convolutions", "max pool"])
def test_eta_and_trace_are_those_of_torchs_jacobian(name):
    module, shape = cases()[name]
    module = module.double().eval()
    x, y = torch.randn(4, *shape, dtype=torch.float64), torch.tensor([0, 1, 2, 1])
    loss = nn.CrossEntropyLoss()
    found = leakscope.torch.audit(module, loss, x, y, sigma=0.5, trace="exact", eta=True).records
    for i in range(4):
        j, g = per_sample_jacobian(module, loss, x[i], y[i])
        assert found["gradient_norm"][i] == pytest.approx(np.linalg.norm(g), rel=1e-9)
        assert found["dfil"][i] == pytest.approx((j**2).sum() / 0.25 / j.shape[1], rel=1e-8)
        assert found["eta"][i] == pytest.approx(np.linalg.norm(j, 2) / 0.5, rel=1e-3)


def test_predictions_and_losses_agree():
    module = cases()["convolutions"][0].double().eval()
    x, y = torch.randn(5, 2, 6, 6, dtype=torch.float64), torch.tensor([0, 1, 2, 1, 0])
    net = leakscope.torch.convert(module, "softmax-cross-entropy", x)
    expected = nn.functional.cross_entropy(module(x), y).item()
    assert net.evaluate(x.permute(0, 2, 3, 1).numpy(), y.numpy())["loss"] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("module, loss, words", [
    (nn.Linear(2, 2), nn.CrossEntropyLoss(), "Sequential"),
    (nn.Sequential(nn.LSTM(2, 2)), nn.CrossEntropyLoss(), "LSTM"),
    (nn.Sequential(nn.Linear(6, 2), nn.Dropout()), nn.CrossEntropyLoss(), "eval"),
    (nn.Sequential(nn.Linear(6, 2)), nn.L1Loss(), "loss"),
    (nn.Sequential(nn.Linear(6, 2)), nn.CrossEntropyLoss(label_smoothing=0.1), "smoothing"),
])
def test_what_has_no_counterpart_is_refused(module, loss, words):
    with pytest.raises(leakscope.OptionError, match=words):
        leakscope.torch.audit(module, loss, torch.randn(3, 6), torch.tensor([0, 1, 0]))
