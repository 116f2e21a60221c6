"""The Opacus tracker and accountant; runs where torch and opacus are installed."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: leakscope.opacus is not tested here (test-torch.sh does)")
opacus = pytest.importorskip("opacus", reason="opacus is not installed: leakscope.opacus is not tested here (test-torch.sh does)")

import leakscope  # noqa: E402
import leakscope.opacus  # noqa: E402
import leakscope.torch  # noqa: E402
from opacus.utils.batch_memory_manager import BatchMemoryManager  # noqa: E402

nn = torch.nn
pytestmark = pytest.mark.filterwarnings("ignore")

N, BATCH = 24, 6
SIGMA, CLIP = 0.8, 0.9


class Small(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.conv, self.drop, self.head = nn.Conv2d(1, 2, 3), nn.Dropout(dropout), nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.drop(torch.tanh(self.conv(x)).flatten(1)))


def records():
    generator = torch.Generator().manual_seed(1)
    return torch.randn(N, 1, 4, 4, generator=generator), torch.randint(0, 3, (N,), generator=generator)


def private(mode="hooks", accountant="rdp", dropout=0.0, double=False, optimizer=None, max_grad_norm=CLIP, **options):
    """Model, optimizer, loader and engine of a run whose every draw is fixed."""
    torch.manual_seed(0)
    model = Small(dropout)
    x, y = records()
    if double:
        model, x = model.double(), x.double()
    data = torch.utils.data.TensorDataset(x, y)
    generator = torch.Generator().manual_seed(7)
    loader = torch.utils.data.DataLoader(data, batch_size=BATCH, generator=generator)
    sgd = (optimizer or (lambda p: torch.optim.SGD(p, lr=0.2, momentum=0.9)))(model.parameters())
    engine = opacus.PrivacyEngine(accountant=accountant)
    more = {"criterion": nn.CrossEntropyLoss()} if mode == "ghost" else {}
    result = engine.make_private(module=model, optimizer=sgd, data_loader=loader, noise_multiplier=SIGMA, max_grad_norm=max_grad_norm,
                                noise_generator=torch.Generator().manual_seed(3), grad_sample_mode=mode, **more, **options)
    if mode == "ghost":
        model, sgd, criterion, loader = result
    else:
        (model, sgd, loader), criterion = result, nn.CrossEntropyLoss()
    return engine, model, sgd, criterion, loader


def loop(model, optimizer, criterion, loader, epochs=2, on_step=lambda: None):
    model.train()
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            on_step()
            optimizer.step()


def weights(model):
    return [p.detach().clone() for p in model.parameters()]


@pytest.mark.parametrize("mode", ["hooks", "functorch", "ew", "ghost"])
@pytest.mark.parametrize("tracked", [{}, {"every": 1}, {"records": [0, 5], "every": 2}])
def test_the_tracker_changes_no_bit_of_a_run(mode, tracked):
    if mode == "ew":
        pytest.importorskip("torch.nn.utils._expanded_weights")
    engine, model, optimizer, criterion, loader = private(mode, dropout=0.3)
    loop(model, optimizer, criterion, loader)
    expected = weights(model)
    again, model, optimizer, criterion, loader = private(mode, dropout=0.3)
    tracker = leakscope.opacus.track(again, optimizer, model, criterion, loader, seed=5, **tracked)
    loop(model, optimizer, criterion, loader)
    assert all(torch.equal(a, b) for a, b in zip(expected, weights(model)))
    assert again.accountant.history == engine.accountant.history
    answer = tracker.result()
    assert answer["steps"] == len(tracker) == 8
    assert any("Dropout was off" in note for note in answer["notes"])


class Pictures(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(2, 4, 3, stride=2, padding=1), nn.GroupNorm(2, 4)
        self.second, self.dense = nn.Conv2d(4, 3, (3, 2), dilation=(1, 2), bias=False), nn.Linear(12, 5)
        self.scale, self.head = nn.LayerNorm(5), nn.Linear(5, 3)

    def forward(self, x):
        x = torch.relu(self.second(torch.tanh(self.norm(self.first(x)))))
        return self.head(torch.tanh(self.scale(self.dense(x.flatten(1)))))


class Sequences(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.dense, self.head = nn.Conv1d(2, 4, 3, padding=1, stride=2), nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, x):
        z = torch.tanh(self.first(x.flatten(2))).transpose(1, 2)
        return self.head(torch.tanh(self.dense(z)).mean(1))


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense, self.head = nn.Linear(16, 16), nn.Linear(16, 3)

    def forward(self, x):
        return self.head(torch.tanh(self.dense(torch.tanh(self.dense(x.flatten(1))))))


def functional_of(module, x, y, loss):
    from leakscope._torch_model import Functional, secret_of, trained_names
    from leakscope._torch_records import _batch

    result = _batch((x, y), None, False, 0)
    result.numbers = list(range(len(x)))
    return Functional(module, loss, trained_names(module, None), secret_of(module, result, None), False), result


@pytest.mark.parametrize("kind", [Pictures, Sequences])
@pytest.mark.parametrize("loss", [nn.CrossEntropyLoss(), nn.CrossEntropyLoss(reduction="sum")])
@pytest.mark.parametrize("frozen", [(), ("dense.bias", "first.weight", "norm.bias")])
def test_passes_over_the_batch_give_the_numbers_of_records_by_themselves(kind, loss, frozen):
    """The oracle: one record at a time by vmap, which knows nothing of layers."""
    from leakscope._leak import probes
    from leakscope._torch_layers import LayerProducts, known
    from leakscope._torch_products import TorchProducts

    torch.manual_seed(3)
    module, x, y = kind().double(), torch.randn(6, 2, 8, 8).double(), torch.tensor([0, 1, 2, 2, 1, 0])
    for name, p in module.named_parameters():
        p.requires_grad_(name not in frozen)
    functional, result = functional_of(module, x, y, loss)
    assert known(functional)
    u = np.stack([probes(3, i, 3, x[0].numel()) for i in range(6)], axis=1)
    for a, b in zip(LayerProducts(functional, result).probed(u), TorchProducts(functional, result, True).probed(u)):
        assert a.shape == b.shape and np.allclose(a, b, rtol=1e-11, atol=1e-13 * np.abs(b).max())


def test_a_layer_that_is_used_twice_is_measured_record_by_record():
    from leakscope._torch_layers import LayerProducts, Unknown, known

    x, y = records()
    functional, answer = functional_of(Twice(), x, y, nn.CrossEntropyLoss())
    assert known(functional)
    with pytest.raises(Unknown):
        LayerProducts(functional, answer).probed(np.ones((2, len(x), 16)))
    functional, _ = functional_of(nn.Sequential(nn.Flatten(), nn.Linear(16, 3), nn.PReLU()), x, y, nn.CrossEntropyLoss())
    assert not known(functional)
    # the tracker finds out, and goes on
    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(x, y)
    loader = torch.utils.data.DataLoader(data, batch_size=BATCH)
    engine = opacus.PrivacyEngine()
    model = Twice()
    model, optimizer, loader = engine.make_private(module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), data_loader=loader,
                                                   noise_multiplier=1.0, max_grad_norm=1.0)
    tracker = leakscope.opacus.track(engine, optimizer, model, nn.CrossEntropyLoss(), loader, seed=1)
    loop(model, optimizer, nn.CrossEntropyLoss(), loader, epochs=1)
    assert tracker._by_layers is False and np.isfinite(tracker.result().records["trace"].dropna()).all()


class Mixing(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        x = x.flatten(1)
        return self.head(x - x.mean(dim=0))


@pytest.mark.parametrize("module, loss, words", [
    (Mixing, nn.CrossEntropyLoss(), "depends on the other records"),
    (Small, nn.CrossEntropyLoss(weight=torch.tensor([1.0, 5.0, 2.0])), "reduction='mean'.*reduction='sum'"),
])
def test_what_no_record_owns_stops_the_loop_at_its_first_step(module, loss, words):
    torch.manual_seed(0)
    x, y = records()
    y[:3] = torch.tensor([0, 1, 2])
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=12, generator=torch.Generator().manual_seed(4))
    engine, model = opacus.PrivacyEngine(), module()
    model, optimizer, loader = engine.make_private(module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), data_loader=loader,
                                                   noise_multiplier=1.0, max_grad_norm=1.0)
    leakscope.opacus.track(engine, optimizer, model, loss, loader)
    with pytest.raises(leakscope.OptionError, match=f"(?s){words}"):
        loop(model, optimizer, loss, loader)


def test_batch_memory_manager_and_detaching():
    engine, model, optimizer, criterion, loader = private()
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=2, optimizer=optimizer) as split:
        loop(model, optimizer, criterion, split)
    expected = weights(model)
    engine, model, optimizer, criterion, loader = private()
    tracker = leakscope.opacus.track(engine, optimizer, model, criterion, loader, every=1)
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=2, optimizer=optimizer) as split:
        loop(model, optimizer, criterion, split)
    assert all(torch.equal(a, b) for a, b in zip(expected, weights(model)))
    assert len(tracker) == 8
    steps = tracker.result().steps
    assert float(np.sum(np.asarray(steps["drawn"]))) == sum(tracker._looks)
    tracker.detach()
    before = len(tracker)
    loop(model, optimizer, criterion, loader, epochs=1)
    assert len(tracker) == before and type(loader.batch_sampler).__iter__ is opacus.utils.uniform_sampler.UniformWithReplacementSampler.__iter__


def coefficients(q, nu):
    """A and B by quadrature of their definition."""
    xi = np.linspace(-12, 12, 40001)
    density = np.exp(-xi * xi / 2) / math.sqrt(2 * math.pi)
    w = q / (q + (1 - q) * np.exp(-nu * nu / 2 - nu * xi))
    step = xi[1] - xi[0]
    return q * (density * w).sum() * step, q * (density * w * xi * xi).sum() * step


def dense(module, x, y):
    """Gradient and Jacobian of one record, by torch's own jacrev of a plain gradient."""
    parameters = {k: v.detach() for k, v in module.named_parameters()}

    def gradient(record):
        def value(p):
            return nn.functional.cross_entropy(torch.func.functional_call(module, p, (record[None],)), y[None])

        return torch.cat([g.reshape(-1) for g in torch.func.grad(value)(parameters).values()])

    j = torch.func.jacrev(gradient)(x)
    return gradient(x).numpy(), j.reshape(j.shape[0], -1).numpy()


def exact_information(g, j, q):
    """tr I of one sampled step: the hard clip's Jacobian, A and B by quadrature."""
    n, s = np.linalg.norm(g), SIGMA * CLIP
    if n > CLIP:
        unit = g / n
        j = CLIP / n * (j - np.outer(unit, unit @ j))
    nu = min(n, CLIP) / s
    a, b = coefficients(q, nu)
    along = (g / n) @ j
    return (a * (j**2).sum() + (b - a) * (along**2).sum()) / s**2, nu


def own_epsilon(nus, q, delta):
    """Rényi accounting of one record's norms, from the formula, over integer orders."""
    best = math.inf
    for a in [2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 128, 256]:
        total = 0.0
        for nu in nus:
            terms = [math.lgamma(a + 1) - math.lgamma(k + 1) - math.lgamma(a - k + 1) + (a - k) * math.log1p(-q) + k * math.log(q)
                     + 0.5 * (k * k - k) * nu * nu for k in range(a + 1)]
            top = max(terms)
            total += (top + math.log(sum(math.exp(t - top) for t in terms))) / (a - 1)
        best = min(best, max(0.0, total + math.log1p(-1 / a) - math.log(delta * a) / (a - 1)))
    return best


def test_a_panel_is_measured_exactly_at_every_step():
    engine, model, optimizer, criterion, loader = private(double=True)
    panel, probes = [3, 11], 64
    tracker = leakscope.opacus.track(engine, optimizer, model, criterion, loader, records=panel, probes=probes, seed=2)
    x, y = records()
    truth, nus = np.zeros(2), [[], []]
    inner = optimizer.step_hook

    def watching(o):
        for at, i in enumerate(panel):
            g, j = dense(Copied.copy(model), x[i].double(), y[i])
            information, nu = exact_information(g, j, loader.sample_rate)
            truth[at] += information
            nus[at].append(nu)
        inner(o)

    class Copied:
        @staticmethod
        def copy(wrapped):
            fresh = Small().double()
            fresh.load_state_dict({k.removeprefix("_module."): v for k, v in wrapped.state_dict().items()})
            return fresh

    optimizer.attach_step_hook(watching)
    loop(model, optimizer, criterion, loader, epochs=1)
    answer = tracker.result()
    rows = answer.records
    assert list(rows.index) == panel
    for at in range(2):
        error = rows["trace_standard_error"].iloc[at]
        assert abs(rows["trace"].iloc[at] - truth[at]) < 4 * error and error < 0.2 * truth[at]
        expected = own_epsilon(nus[at], loader.sample_rate, 1e-5)
        of_run = answer["privacy"]["epsilon"]
        assert rows["epsilon"].iloc[at] == pytest.approx(min(expected, of_run), rel=1e-2)
        # tabulated upwards, never down
        assert rows["epsilon"].iloc[at] >= min(expected, of_run) * (1 - 1e-9)
    assert answer["tracking"] == {"records": "panel", "panel": 2, "probes": 64}
    assert answer["accounts"]["epsilon"] is not None


def by_the_clock(monkeypatch):
    """Times that change from step to step choose, and are given: 1 s a step, looks of 1 s to 4 s."""
    numbers = np.random.default_rng(0)
    monkeypatch.setattr(leakscope._opacus_schedule, "probability", lambda *_: float(numbers.uniform(0.25, 1.0)))
    return {"cost": 0.5}


@pytest.mark.parametrize("chosen", [lambda _: {"every": 2}, by_the_clock], ids=["every", "cost"])
def test_drawn_records_are_unbiased(chosen, monkeypatch):
    """Over many runs of the sampler at the same parameters (a learning rate of zero) the mean is the exact account."""
    x, y = records()
    frozen = lambda p: torch.optim.SGD(p, lr=0.0)  # noqa: E731
    engine, model, optimizer, criterion, loader = private(double=True, optimizer=frozen)
    module = model._module
    exact = []
    for i in range(N):
        g, j = dense(_plain(module), x[i].double(), y[i])
        exact.append(exact_information(g, j, loader.sample_rate)[0])
    tracker = leakscope.opacus.track(engine, optimizer, model, criterion, loader, seed=1, **chosen(monkeypatch))
    loop(model, optimizer, criterion, loader, epochs=60)
    steps = len(tracker)
    answer = tracker.result().records
    z = (answer["trace"] / steps - exact) / (answer["trace_standard_error"] / steps)
    assert np.abs(z.mean()) < 1.5 and (np.abs(z) < 4.5).all()
    assert answer["trace"].mean() / steps == pytest.approx(np.mean(exact), rel=0.15)
    norms = [np.linalg.norm(dense(_plain(module), x[i].double(), y[i])[0]) for i in range(N)]
    assert np.allclose(answer["gradient_norm"], norms, rtol=1e-9)


def _plain(module):
    fresh = Small().double()
    fresh.load_state_dict(module.state_dict())
    return fresh


def test_norms_are_those_that_opacus_clips():
    engine, model, optimizer, criterion, loader = private()
    tracker = leakscope.opacus.track(engine, optimizer, model, criterion, loader)
    seen = []

    def on_step():
        squares = [p.grad_sample.reshape(len(p.grad_sample), -1).pow(2).sum(1) for p in model.parameters()]
        seen.append(torch.stack(squares).sum(0).sqrt().numpy())

    model.train()
    batch = next(iter(loader))
    criterion(model(batch[0]), batch[1]).backward()
    on_step()
    drawn = list(tracker._queue[0])
    optimizer.step()
    assert np.allclose(tracker._norm[drawn], seen[0], rtol=1e-5)


def test_the_page_and_the_document(tmp_path):
    engine, model, optimizer, criterion, loader = private(accountant="leakscope")
    tracker = leakscope.opacus.track(engine, optimizer, model, criterion, loader, delta=1e-4, seed=1)
    with pytest.raises(leakscope.LeakscopeError, match="no step was measured"):
        tracker.result()
    loop(model, optimizer, criterion, loader)
    page = tracker.report(tmp_path / "report.html").read_text()
    assert "Small" in page and "Opacus" in page
    answer = tracker.result()
    assert answer["schema"] == "leakscope.net-training/1" and answer["steps"] == 8
    assert any("cost=0.3" in note and "One step in" in note for note in answer["notes"])
    assert answer["privacy"]["epsilon"] == pytest.approx(engine.get_epsilon(1e-4), rel=1e-12)
    assert answer.epsilon(1e-4) == pytest.approx(engine.get_epsilon(1e-4), rel=1e-12)
    assert len(answer.records) == N and len(answer.steps) == 8
    written = answer.save(tmp_path / "run")
    assert {p.name for p in written} == {"training.json", "report.html", "records.parquet"}


def test_the_accountant_of_the_registry_is_certified():
    engine = opacus.PrivacyEngine(accountant="leakscope")
    assert isinstance(engine.accountant, leakscope.opacus.LeakscopeAccountant)
    prv = opacus.accountants.create_accountant("prv")
    rdp = opacus.accountants.create_accountant("rdp")
    for _ in range(100):
        for accountant in (engine.accountant, prv, rdp):
            accountant.step(noise_multiplier=1.1, sample_rate=0.01)
    epsilon = engine.get_epsilon(1e-5)
    lower, upper = leakscope.Accountant.get_epsilon_interval(engine.accountant._inner, 1e-5)
    assert epsilon == upper and epsilon <= rdp.get_epsilon(1e-5)
    assert epsilon == pytest.approx(prv.get_epsilon(1e-5, eps_error=0.01), abs=0.02) and lower <= epsilon
    assert len(engine.accountant) == 100 and engine.accountant.mechanism() == "leakscope"
    state = engine.accountant.state_dict()
    other = leakscope.opacus.LeakscopeAccountant()
    other.load_state_dict(state)
    assert other.get_epsilon(1e-5) == epsilon


def test_the_noise_for_a_target_by_the_registry():
    torch.manual_seed(0)
    x, y = records()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=BATCH)
    model = Small()
    engine = opacus.PrivacyEngine(accountant="leakscope")
    model, optimizer, loader = engine.make_private_with_epsilon(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), data_loader=loader, target_epsilon=3.0, target_delta=1e-3,
        epochs=2, max_grad_norm=1.0)
    loop(model, optimizer, nn.CrossEntropyLoss(), loader)
    assert 2.5 < engine.get_epsilon(1e-3) <= 3.01


def test_what_cannot_be_tracked_is_refused():
    engine, model, optimizer, criterion, loader = private()
    with pytest.raises(leakscope.OptionError, match="make_private"):
        leakscope.opacus.track(engine, torch.optim.SGD(model.parameters(), lr=0.1), model, criterion, loader)
    with pytest.raises(leakscope.OptionError, match="Poisson"):
        leakscope.opacus.track(engine, optimizer, model, criterion, torch.utils.data.DataLoader(loader.dataset, batch_size=2))
    with pytest.raises(leakscope.OptionError, match="cost=0.1: every=2 says"):
        leakscope.opacus.track(engine, optimizer, model, criterion, loader, every=2, cost=0.1)
    with pytest.raises(leakscope.OptionError, match="cost=-1: expected a positive number"):
        leakscope.opacus.track(engine, optimizer, model, criterion, loader, cost=-1)
    with pytest.raises(leakscope.OptionError, match="probes"):
        leakscope.opacus.track(engine, optimizer, model, criterion, loader, probes=1)
    with pytest.raises(leakscope.OptionError, match="records"):
        leakscope.opacus.track(engine, optimizer, model, criterion, loader, records=[N])
    with pytest.raises(leakscope.OptionError, match="records"):
        leakscope.opacus.track(engine, optimizer, model, criterion, loader, records=[1, 1])
    engine, model, optimizer, criterion, loader = private(clipping="per_layer", max_grad_norm=[1.0] * 4)
    with pytest.raises(leakscope.OptionError, match="clipping='flat'"):
        leakscope.opacus.track(engine, optimizer, model, criterion, loader)
    engine, model, optimizer, criterion, loader = private()
    optimizer.noise_multiplier = 0.0
    with pytest.raises(leakscope.OptionError, match="noise"):
        leakscope.opacus.track(engine, optimizer, model, criterion, loader)


def test_a_step_without_a_batch_of_the_loader_is_an_error():
    engine, model, optimizer, criterion, loader = private()
    leakscope.opacus.track(engine, optimizer, model, criterion, loader)
    x, y = records()
    criterion(model(x[:4]), y[:4]).backward()
    with pytest.raises(leakscope.LeakscopeError, match="without a batch"):
        optimizer.step()
