"""The Lightning callback: what torch.audit finds, at the right moments, and a fit that it does not change."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: leakscope.lightning is not tested here")
lightning = pytest.importorskip("lightning", reason="lightning is not installed: leakscope.lightning is not tested here")

import leakscope  # noqa: E402
import leakscope.lightning  # noqa: E402
import leakscope.torch  # noqa: E402

nn = torch.nn


class Small(lightning.pytorch.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Dropout(0.3), nn.Tanh(), nn.Linear(5, 3))

    def forward(self, x):
        return self.layers(x)

    def training_step(self, batch, _):
        x, y = batch
        return nn.functional.cross_entropy(self(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def data():
    rng = torch.Generator().manual_seed(1)
    return torch.randn(40, 4, generator=rng), torch.randint(0, 3, (40,), generator=rng)


def fitted(*callbacks, epochs=4, logger=False):
    torch.manual_seed(0)
    module = Small()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*data()), batch_size=10)
    trainer = lightning.pytorch.Trainer(max_epochs=epochs, callbacks=list(callbacks), logger=logger, accelerator="cpu",
                                        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(module, loader)
    return module


def test_it_finds_what_an_audit_finds_and_changes_nothing(tmp_path):
    x, y = data()
    options = dict(clip=1.0, sigma=2.0, trace="exact", seed=3)
    callback = leakscope.lightning.AuditCallback(nn.CrossEntropyLoss(), x, y, every=2, out=tmp_path, **options)
    module, alone = fitted(callback), fitted()
    for a, b in zip(module.parameters(), alone.parameters()):
        assert torch.equal(a, b)
    assert module.training == alone.training
    assert [epoch for epoch, _ in callback.audits] == [2, 4, 4]
    expected = leakscope.torch.audit(module.eval(), nn.CrossEntropyLoss(), x, y, **options)
    np.testing.assert_allclose(callback.result.records["dfil"], expected.records["dfil"], rtol=1e-6)
    assert (tmp_path / "epoch-2" / "report.html").is_file() and (tmp_path / "end" / "audit.json").is_file()
    # the second epoch is another model
    assert not np.allclose(callback.audits[0][1].records["dfil"], expected.records["dfil"])


def test_numbers_go_to_the_loggers():
    class Kept(lightning.pytorch.loggers.Logger):
        name, version = "kept", 0

        def __init__(self):
            super().__init__()
            self.seen = []

        def log_metrics(self, metrics, step=None):
            self.seen.append((step, dict(metrics)))

        def log_hyperparams(self, *args, **kwargs):
            pass

    x, y = data()
    kept = Kept()
    callback = leakscope.lightning.AuditCallback("softmax-cross-entropy", x, y, trace="exact", seed=1)
    fitted(callback, epochs=1, logger=kept)
    step, numbers = next((s, m) for s, m in kept.seen if "leakscope/dfil_max" in m)
    assert step == 4 and numbers["leakscope/dfil_max"] == callback.result["dfil"]["max"]
    assert 0 < numbers["leakscope/dfil_median"] <= numbers["leakscope/dfil_max"]


def test_what_cannot_be_is_named():
    with pytest.raises(leakscope.OptionError, match="every"):
        leakscope.lightning.AuditCallback(nn.CrossEntropyLoss(), *data(), every=0)
