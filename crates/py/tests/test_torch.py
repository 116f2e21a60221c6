"""torch modules against torch's own derivatives; runs where torch is installed."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: leakscope.torch is not tested here")

import leakscope  # noqa: E402
import leakscope.torch  # noqa: E402

nn = torch.nn


def per_sample_jacobian(module, loss, x, y):
    """∂g/∂x of one record by torch.func, g the gradient of its loss by all parameters that are trained."""
    parameters = {k: v.detach() for k, v in module.named_parameters() if v.requires_grad}

    def gradient(record):
        def of(p):
            return loss(torch.func.functional_call(module, p, (record[None],)), y[None])

        return torch.cat([g.reshape(-1) for g in torch.func.grad(of)(parameters).values()])

    j = torch.func.jacrev(gradient)(x)
    return j.reshape(j.shape[0], -1).detach().numpy(), gradient(x).detach().numpy()


def drawn(norm):
    """A norm layer whose every number is another, so that a wrong order of features shows."""
    for values in (norm.weight, norm.bias, getattr(norm, "running_mean", None)):
        if values is not None:
            values.data = torch.randn_like(values)
    if hasattr(norm, "running_var"):
        norm.running_var = torch.rand_like(norm.running_var) + 0.5
    return norm


def frozen(layer):
    return layer.requires_grad_(False)


class Block(nn.Module):
    """The block of a ResNet: two convolutions, and what came in, through one of its own where shapes differ."""

    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), drawn(nn.BatchNorm2d(outputs))
        self.relu = nn.ReLU(inplace=True)
        self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), drawn(nn.BatchNorm2d(outputs))
        same = stride == 1 and inputs == outputs
        self.shortcut = None if same else nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride), drawn(nn.BatchNorm2d(outputs)))

    def forward(self, x):
        identity = x if self.shortcut is None else self.shortcut(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class SmallResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.Tanh())
        self.blocks = nn.Sequential(Block(3, 3), Block(3, 4, 2))
        self.pool, self.fc = nn.AdaptiveAvgPool2d((2, 2)), nn.Linear(16, 3)

    def forward(self, x):
        x = self.pool(self.blocks(self.stem(x)))
        return self.fc(torch.flatten(x, 1))


class Written(nn.Module):
    """Functions in place of layers, a gate, a view."""

    def __init__(self):
        super().__init__()
        self.conv, self.depthwise = nn.Conv2d(2, 4, 3, padding="same", dilation=2), nn.Conv2d(4, 4, 3, groups=4)
        self.gate, self.up, self.end = nn.Linear(16, 5), nn.Linear(16, 5), nn.Linear(5, 3)

    def forward(self, x):
        h = nn.functional.gelu(self.conv(x), approximate="tanh")
        h = nn.functional.max_pool2d(nn.functional.leaky_relu(self.depthwise(h), 0.1), 2)
        h = nn.functional.dropout(h, 0.5, self.training).view(x.size(0), -1)
        return self.end(nn.functional.silu(self.gate(h)).mul(self.up(h)) + torch.sigmoid(self.gate_free(h)))

    def gate_free(self, h):
        return torch.tanh(self.up_twice(h))

    def up_twice(self, h):
        return nn.functional.elu(self.other(h), 0.5)


def written():
    module = Written()
    module.other = nn.Linear(16, 5)
    return module


class Means(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.end = nn.Conv2d(2, 6, 3), drawn(nn.GroupNorm(3, 6)), nn.Linear(6, 3)

    def forward(self, x):
        return self.end(nn.functional.softplus(self.norm(self.conv(x))).mean((-1, -2)))


class Mixed(nn.Module):
    """A residual connection over vectors, with a norm by the root mean square."""

    def __init__(self):
        super().__init__()
        self.norm, self.dense, self.end = drawn_weight(nn.RMSNorm(6)), nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x):
        return self.end(x + torch.tanh(self.dense(self.norm(x))))


def drawn_weight(norm):
    norm.weight.data = torch.randn_like(norm.weight)
    return norm


class Backwards(nn.Sequential):
    def forward(self, x):
        for layer in reversed(self):
            x = layer(x)
        return x


def cases():
    torch.manual_seed(0)
    tanh = nn.Tanh()
    return {
        "dense": (nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)), (6,)),
        "layer norm, gelu": (nn.Sequential(nn.Linear(6, 5), drawn(nn.LayerNorm(5)), nn.GELU(), nn.Linear(5, 3)), (6,)),
        "convolutions": (nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1), drawn(nn.BatchNorm2d(4)), nn.Sigmoid(), nn.AvgPool2d(2),
            nn.Sequential(nn.Conv2d(4, 3, 2), nn.Tanh()), nn.Dropout(), nn.Flatten(), nn.Linear(12, 3)), (2, 6, 6)),
        "max pool": (nn.Sequential(nn.Conv2d(1, 2, 3, bias=False), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Identity(),
                                   nn.Linear(8, 3)), (1, 6, 6)),
        "padded pools": (nn.Sequential(nn.Conv2d(2, 3, 3), nn.MaxPool2d(2, 2, 1), nn.AvgPool2d(2, 1, 1), nn.Flatten(),
                                       nn.Linear(48, 3)), (2, 6, 6)),
        "flattened, layer norm": (nn.Sequential(nn.Conv2d(2, 3, (3, 2)), nn.Flatten(), drawn(nn.LayerNorm(60)), nn.Tanh(),
                                                nn.Linear(60, 3)), (2, 6, 6)),
        "flattened, batch norm": (nn.Sequential(nn.Conv2d(2, 3, (3, 2)), nn.Flatten(), drawn(nn.BatchNorm1d(60)),
                                                nn.Linear(60, 3), drawn(nn.BatchNorm1d(3))), (2, 6, 6)),
        "an activation used twice": (nn.Sequential(nn.Linear(6, 5), tanh, nn.Linear(5, 4), tanh, nn.Linear(4, 3)), (6,)),
        "a frozen layer": (nn.Sequential(frozen(nn.Linear(6, 5)), nn.Tanh(), nn.Linear(5, 3)), (6,)),
        "a small ResNet": (SmallResNet(), (2, 6, 6)),
        "functions and a gate": (written(), (2, 6, 6)),
        "means over positions": (Means(), (2, 6, 6)),
        "a residual chain": (nn.Sequential(Mixed(), nn.SiLU(), nn.Linear(3, 3)), (6,)),
        "layers in reverse": (Backwards(nn.Linear(5, 3), nn.ELU(), nn.Linear(6, 5)), (6,)),
        "one pixel, many channels": (nn.Sequential(nn.Conv2d(2, 3, 6), nn.Flatten()), (2, 6, 6)),
    }


def matches_torch(module, loss, x, y, clip=None, kind="hard", sigma=0.5):
    """Compares an audit with the per-record derivatives of torch; ``loss`` is of one record."""
    clip_kind = None if clip is None else kind
    result = leakscope.torch.audit(module, loss, x, y, sigma=sigma, trace="exact", eta=True, plis=True, clip=clip,
                                  clip_kind=clip_kind, engine="kernels")
    raw = leakscope.torch.audit(module, loss, x, y, sigma=sigma, trace="skip", plis="raw", clip=clip, clip_kind=clip_kind)
    rows = result.records
    for i in range(len(x)):
        j, g = per_sample_jacobian(module, loss, x[i], y[i])
        n = np.linalg.norm(g)
        noise, plain = sigma, j
        if clip is not None:
            # clip(g) = s(n) g, whose Jacobian is s I + (s'/n) g gᵀ.
            noise = sigma * clip
            smooth = torch.tensor(n / clip, dtype=torch.float64, requires_grad=True)
            s = 1 / (nn.functional.gelu(smooth - 1) + 1) if kind == "gelu" else (1 / smooth).clamp(max=1)
            (slope,) = torch.autograd.grad(s, smooth)
            s, slope = s.item(), slope.item() / clip
            plain, j = j, s * j + slope / n * np.outer(g, g @ j)
            assert rows["released_norm"][i] == pytest.approx(s * n, rel=1e-9)
            released = 2 * s * g @ j / noise**2
            assert rows["plis"][i] == pytest.approx(np.linalg.norm(released), abs=1e-9)
        with torch.no_grad():
            assert rows["loss"][i] == pytest.approx(loss(module(x[i : i + 1]), y[i : i + 1]).item(), rel=1e-9)
        assert rows["gradient_norm"][i] == pytest.approx(n, rel=1e-9)
        assert rows["dfil"][i] == pytest.approx((j**2).sum() / noise**2 / j.shape[1], rel=1e-8)
        assert rows["eta"][i] == pytest.approx(np.linalg.norm(j, 2) / noise, rel=1e-3)
        # in the layout that went in
        expected = (2 * g @ plain / noise**2).reshape(x.shape[1:])
        assert raw.plis_maps[i].shape == expected.shape
        assert np.allclose(raw.plis_maps[i], expected, atol=1e-9 * (1 + np.abs(expected).max()))


@pytest.mark.parametrize("name", list(cases()))
def test_eta_trace_and_plis_are_those_of_torchs_jacobian(name):
    module, shape = cases()[name]
    module = module.double().eval()
    x, y = torch.randn(4, *shape, dtype=torch.float64), torch.tensor([0, 1, 2, 1])
    matches_torch(module, nn.CrossEntropyLoss(), x, y)


@pytest.mark.parametrize("clip, kind", [(None, None), (0.7, "hard"), (0.7, "gelu"), (50.0, "hard")])
@pytest.mark.parametrize("loss, outputs", [
    (nn.MSELoss(), 1), (nn.MSELoss(), 3), (nn.MSELoss(reduction="sum"), 3),
    (nn.BCEWithLogitsLoss(), 1), (nn.BCEWithLogitsLoss(), 2), (nn.BCEWithLogitsLoss(reduction="sum"), 2),
    (nn.CrossEntropyLoss(), 3), (nn.CrossEntropyLoss(reduction="sum"), 3), (nn.CrossEntropyLoss(ignore_index=7), 3),
])
def test_the_loss_is_torchs_of_one_record(loss, outputs, clip, kind):
    torch.manual_seed(1)
    module = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, outputs)).double()
    x = torch.randn(4, 4, dtype=torch.float64)
    y = {nn.MSELoss: lambda: torch.randn(4, outputs, dtype=torch.float64),
         nn.BCEWithLogitsLoss: lambda: torch.randint(0, 2, (4, outputs)).double(),
         nn.CrossEntropyLoss: lambda: torch.randint(0, outputs, (4,))}[type(loss)]()
    matches_torch(module, loss, x, y, clip, kind)


def test_predictions_and_losses_agree():
    module = cases()["convolutions"][0].double().eval()
    x, y = torch.randn(5, 2, 6, 6, dtype=torch.float64), torch.tensor([0, 1, 2, 1, 0])
    net = leakscope.torch.convert(module, "softmax-cross-entropy", x)
    expected = nn.functional.cross_entropy(module(x), y).item()
    assert net.evaluate(x.permute(0, 2, 3, 1).numpy(), y.numpy())["loss"] == pytest.approx(expected, rel=1e-10)


def test_a_loss_by_name_or_class():
    module = nn.Sequential(nn.Linear(4, 3)).double()
    x, y = torch.randn(4, 4, dtype=torch.float64), torch.randn(4, 3, dtype=torch.float64)
    by_class = leakscope.torch.audit(module, nn.MSELoss, x, y, trace="exact").records["gradient_norm"]
    by_name = leakscope.torch.audit(module, "squared-error", x, y, trace="exact").records["gradient_norm"]
    none = leakscope.torch.audit(nn.Sequential(nn.Linear(4, 1)), nn.MSELoss(reduction="none"), x, y[:, 0], trace="skip")
    assert np.allclose(by_class, by_name * 2 / 3) and len(none.records) == 4
    with pytest.raises(leakscope.OptionError, match="0.6667 times squared-error"):
        leakscope.torch.convert(module, nn.MSELoss(), x)
    assert leakscope.torch.convert(module, "squared-error", x).spec["loss"] == "squared-error"


class Late(nn.Module):
    """Reads again what a rectifier has changed in place."""

    def __init__(self, first=None):
        super().__init__()
        self.first, self.dense, self.rectifier = first or nn.Tanh(), nn.Linear(6, 6), nn.ReLU(inplace=True)

    def forward(self, x):
        h = self.dense(x)
        if isinstance(self.first, nn.Identity):
            h = self.first(h)
        return self.rectifier(h) + h


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(6, 2)

    def forward(self, x):
        return self.dense(x) if x.sum() > 0 else self.dense(-x)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense, self.scale = nn.Linear(6, 2), nn.Parameter(torch.ones(2))

    def forward(self, x):
        return self.dense(x) * self.scale


class Unequal(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(6, 2), nn.Linear(6, 1)

    def forward(self, x):
        return self.one(x) + self.two(x)


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense, self.end = nn.Linear(6, 6), nn.Linear(6, 2)

    def forward(self, x):
        return self.end(self.dense(torch.tanh(self.dense(x))))


class Dropping(nn.Module):
    def forward(self, x):
        return nn.functional.dropout(x, 0.5)


class Doubled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


def hooked():
    layer = nn.Linear(6, 2)
    layer.register_forward_hook(lambda *_: None)
    return nn.Sequential(layer)


def shared():
    layer = nn.Linear(6, 6)
    return nn.Sequential(layer, nn.Tanh(), layer, nn.Linear(6, 2))


def tied():
    first, second = nn.Linear(6, 6), nn.Linear(6, 6)
    second.weight = first.weight
    return nn.Sequential(first, nn.Tanh(), second, nn.Linear(6, 2))


@pytest.mark.parametrize("module, loss, words", [
    (nn.Linear(2, 2), nn.CrossEntropyLoss(), "Sequential"),
    (nn.Sequential(nn.LSTM(2, 2)), nn.CrossEntropyLoss(), "LSTM"),
    (nn.Sequential(nn.Linear(6, 2), nn.Dropout()), nn.CrossEntropyLoss(), "eval"),
    (nn.Sequential(nn.Linear(6, 2)), nn.L1Loss(), "loss"),
    (nn.Sequential(nn.Linear(6, 2)), nn.CrossEntropyLoss(label_smoothing=0.1), "smoothing"),
    (nn.Sequential(nn.Linear(6, 2)), nn.CrossEntropyLoss(weight=torch.ones(2)), "weights"),
    (nn.Sequential(nn.Linear(6, 2)), nn.BCEWithLogitsLoss(pos_weight=torch.ones(2)), "weights"),
    (nn.Sequential(nn.Linear(6, 2)), nn.MSELoss(reduction="none"), "reduction"),
    (nn.Sequential(nn.Linear(6, 2)), nn.MSELoss(), r"y: shape \(3,\)"),
    (nn.Sequential(nn.Linear(6, 2)), nn.BCEWithLogitsLoss(), r"y: shape \(3,\)"),
    (nn.Sequential(nn.Linear(6, 2)), nn.CrossEntropyLoss(ignore_index=1), "record 1 has the label 1"),
    (nn.Sequential(nn.Conv2d(2, 3, 3)), nn.CrossEntropyLoss(), r"0 \(Conv2d\).*image"),
    (nn.Sequential(nn.Linear(6, 2), nn.MaxPool2d(2)), nn.CrossEntropyLoss(), r"1 \(MaxPool2d\).*image"),
    (nn.Sequential(nn.BatchNorm2d(6)).eval(), nn.CrossEntropyLoss(), r"0 \(BatchNorm2d\).*image"),
    (nn.Sequential(), nn.CrossEntropyLoss(), "no Linear"),
    (nn.Sequential(Doubled(6, 2)), nn.CrossEntropyLoss(), "Doubled"),
    (Late(), nn.CrossEntropyLoss(), "in place"),
    (Late(nn.Identity()), nn.CrossEntropyLoss(), "in place"),
    (Branching(), nn.CrossEntropyLoss(), "followed"),
    (Scaled(), nn.CrossEntropyLoss(), "parameter"),
    (Unequal(), nn.CrossEntropyLoss(), "shape"),
    (Twice(), nn.CrossEntropyLoss(), "again"),
    (nn.Sequential(Dropping(), nn.Linear(6, 2)), nn.CrossEntropyLoss(), "Dropping"),
    (hooked(), nn.CrossEntropyLoss(), "hooks"),
    (shared(), nn.CrossEntropyLoss(), r"2.weight is 0.weight again"),
    (tied(), nn.CrossEntropyLoss(), r"2.weight is 0.weight again"),
])
def test_what_has_no_counterpart_is_refused(module, loss, words):
    with pytest.raises(leakscope.LeakscopeError, match=words) as raised:
        leakscope.torch.audit(module, loss, torch.randn(3, 6), torch.tensor([0, 1, 0]), engine="kernels")
    assert isinstance(raised.value, (leakscope.OptionError, leakscope.DataError))


@pytest.mark.parametrize("module, words", [
    (nn.Sequential(nn.Conv2d(2, 3, 3), nn.Linear(4, 3)), r"1 \(Linear\).*\(3, 4, 4\).*Flatten"),
    (nn.Sequential(nn.Conv2d(2, 3, 3)), "output is an image"),
    (nn.Sequential(nn.Conv2d(2, 3, 3), nn.Flatten()), "output is an image"),
])
def test_images_need_a_flatten_and_an_end(module, words):
    with pytest.raises(leakscope.OptionError, match=words):
        leakscope.torch.audit(module, nn.CrossEntropyLoss(), torch.randn(3, 2, 6, 6), torch.tensor([0, 1, 0]), engine="kernels")
