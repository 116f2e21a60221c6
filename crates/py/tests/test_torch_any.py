"""Any torch module: against Leakscope's kernels, finite differences and dense Jacobians; runs where torch is installed."""

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: leakscope.torch is not tested here (test-torch.sh does)")

import leakscope  # noqa: E402
import leakscope.torch  # noqa: E402

nn, F = torch.nn, torch.nn.functional
F64 = torch.float64


def audit(*args, **options):
    return leakscope.torch.audit(*args, engine="torch", **options)


# ---- the same numbers as the kernels


def known(outputs=3):
    torch.manual_seed(0)
    return {
        "dense": (nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, outputs)), (6,)),
        "norms": (nn.Sequential(nn.Linear(6, 5), nn.LayerNorm(5), nn.GELU(), nn.Linear(5, outputs)), (6,)),
        "images": (nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Sigmoid(), nn.AvgPool2d(2), nn.Flatten(),
                                 nn.Linear(36, outputs)), (3, 6, 6)),
    }


CLIPS = [(None, None), (0.7, "hard"), (0.7, "gelu"), (50.0, "gelu"), (1e-3, "gelu")]


@pytest.mark.parametrize("clip, kind", CLIPS)
@pytest.mark.parametrize("name", list(known()))
def test_the_kernels_and_torch_agree(name, clip, kind):
    module, shape = known()[name]
    module = module.double().eval()
    x, y = torch.randn(5, *shape, dtype=F64), torch.tensor([0, 1, 2, 1, 0])
    options = dict(clip=clip, clip_kind=kind, sigma=0.4, trace="elements", eta=True, plis=True, seed=1)
    ours = leakscope.torch.audit(module, nn.CrossEntropyLoss(), x, y, engine="kernels", **options)
    theirs = audit(module, nn.CrossEntropyLoss(), x, y, **options)
    a, b = ours.records, theirs.records
    assert list(a) == list(b)
    # η comes from other starting vectors, to a residual of 1e-6
    for column in ("loss", "gradient_norm", "released_norm", "trace", "dfil", "plis", "eta", "jacobian_sensitivity"):
        assert np.allclose(a[column], b[column], rtol=1e-10, atol=1e-12), column
    assert list(a["right"]) == list(b["right"])
    mine = theirs.plis_maps
    if len(shape) == 3:
        assert mine.shape == (5, 3, 6, 6)  # as they went in
        mine = mine.transpose(0, 2, 3, 1) if ours.plis_maps.shape != mine.shape else mine
    assert np.allclose(ours.plis_maps, mine, rtol=1e-9, atol=1e-9 * np.abs(mine).max())
    for field in ("schema", "release", "trace", "measured", "label_secret", "min_mse", "accuracy", "loss", "plis_of", "spread"):
        assert theirs[field] == pytest.approx(ours[field], rel=1e-9) if not isinstance(ours[field], (dict, type(None), str)) \
            else True, field
    assert theirs["dfil"]["max"] == pytest.approx(ours["dfil"]["max"], rel=1e-10)
    assert [r["record"] for r in theirs["most_dfil"]] == [r["record"] for r in ours["most_dfil"]]
    assert theirs["typical_error"]["value"] == pytest.approx(ours["typical_error"]["value"], rel=1e-9)


@pytest.mark.parametrize("loss, target", [
    (nn.CrossEntropyLoss(), torch.tensor([0, 2, 1])), ("softmax-cross-entropy", torch.tensor([0, 2, 1])),
    (nn.MSELoss(), torch.randn(3, 3, dtype=F64)), ("squared-error", torch.randn(3, 3, dtype=F64)),
    ("binary-cross-entropy", torch.randint(0, 2, (3, 3)).double()),
])
def test_losses_and_secret_labels_agree(loss, target):
    module = known()["dense"][0].double()
    x = torch.randn(3, 6, dtype=F64)
    options = dict(trace="exact", plis=True, eta=True, label="secret", clip=2.0, clip_kind="gelu", seed=0)
    ours = leakscope.torch.audit(module, loss, x, target, engine="kernels", **options)
    theirs = audit(module, loss, x, target, **options)
    for column in ("loss", "gradient_norm", "dfil", "plis"):
        assert np.allclose(ours.records[column], theirs.records[column], rtol=1e-10), column
    assert theirs["label_secret"] is True


def test_known_modules_still_go_to_the_kernels(monkeypatch):
    from leakscope import _torch_audit

    monkeypatch.setattr(_torch_audit, "audit", lambda *a, **k: pytest.fail("torch ran it"))
    module = known()["dense"][0]
    assert len(leakscope.torch.audit(module, nn.CrossEntropyLoss(), torch.randn(3, 6), torch.tensor([0, 1, 2])).records) == 3


# ---- modules that only torch can run, against finite differences of their gradients


class Residual(nn.Module):
    """A small ResNet."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.norms = nn.ModuleList([nn.BatchNorm2d(4), nn.GroupNorm(2, 4)])
        self.convs = nn.ModuleList([nn.Conv2d(4, 4, 3, padding=1) for _ in range(2)])
        self.act = nn.SiLU(inplace=True)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        x = self.stem(x)
        for norm, conv in zip(self.norms, self.convs):
            x = x + conv(self.act(norm(x)))
        return self.head(x.mean(dim=(2, 3)))


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(1, 8, 3, stride=3)
        self.token = nn.Parameter(torch.randn(1, 1, 8))
        self.place = nn.Parameter(torch.randn(1, 5, 8))
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        tokens = self.patch(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(len(x), -1, -1), tokens], dim=1) + self.place
        return self.head(self.encoder(tokens)[:, 0])


class Recurrent(nn.Module):
    def __init__(self, kind=nn.LSTM, **options):
        super().__init__()
        self.cell = kind(4, 3, batch_first=True, **options)
        self.head = nn.Linear(3 * (2 if options.get("bidirectional") else 1), 3)

    def forward(self, x):
        return self.head(self.cell(x)[0][:, -1])


ZOO = {
    "resnet": (Residual, (3, 5, 5)),
    "vit": (ViT, (1, 6, 6)),
    "lstm": (Recurrent, (4, 4)),
    "lstm, two ways, two layers": (lambda: Recurrent(bidirectional=True, num_layers=2), (3, 4)),
    "gru": (lambda: Recurrent(nn.GRU), (4, 4)),
}


def gradient(module, loss, x, y, names=None):
    """The flat gradient of one record by plain backward: no torch.func."""
    parameters = [p for k, p in module.named_parameters() if (p.requires_grad if names is None else k in names)]
    kept = [p.requires_grad for p in parameters]
    for p in parameters:
        p.requires_grad_(True)
    result = torch.autograd.grad(loss(module(x[None]), y[None]), parameters, allow_unused=True)
    for p, k in zip(parameters, kept):
        p.requires_grad_(k)
    return torch.cat([(torch.zeros_like(p) if g is None else g).reshape(-1) for g, p in zip(result, parameters)]).detach().numpy()


def differences(function, x, h=1e-5):
    """The Jacobian by central differences."""
    flat, columns = x.reshape(-1), []
    for i in range(flat.numel()):
        step = torch.zeros_like(flat)
        step[i] = h
        ends = [function((flat + s * step).reshape(x.shape)) for s in (1, -1)]
        columns.append((ends[0] - ends[1]) / (2 * h))
    return np.stack(columns, axis=1)


def released(g, j, clip, kind):
    n = np.linalg.norm(g)
    if clip is None:
        return g, j
    r = torch.tensor(n / clip, dtype=F64, requires_grad=True)
    s = 1 / (F.gelu(r - 1) + 1) if kind == "gelu" else (1 / r).clamp(max=1)
    (slope,) = torch.autograd.grad(s, r)
    s, slope = s.item(), slope.item() / clip
    return s * g, s * j + slope / n * np.outer(g, g @ j)


@pytest.mark.parametrize("clip, kind", [(None, None), (0.8, "gelu")])
@pytest.mark.parametrize("name", list(ZOO))
def test_measures_are_those_of_finite_differences(name, clip, kind):
    torch.manual_seed(3)
    make, shape = ZOO[name]
    module = make().double().eval()
    x, y = torch.randn(3, *shape, dtype=F64), torch.tensor([0, 1, 2])
    loss, sigma = nn.CrossEntropyLoss(), 0.5
    result = audit(module, loss, x, y, clip=clip, clip_kind=kind, sigma=sigma, trace="exact", eta=True, plis=True, seed=2)
    noise = sigma * (clip or 1)
    for i in range(len(x)):
        g = gradient(module, loss, x[i], y[i])
        j = differences(lambda v: gradient(module, loss, v, y[i]), x[i])
        c, cj = released(g, j, clip, kind)
        row = result.records.iloc[i]
        assert row["gradient_norm"] == pytest.approx(np.linalg.norm(g), rel=1e-10)
        assert row["trace"] == pytest.approx((cj**2).sum() / noise**2, rel=1e-6)
        assert row["dfil"] == pytest.approx((cj**2).sum() / noise**2 / x[i].numel(), rel=1e-6)
        assert row["eta"] == pytest.approx(np.linalg.norm(cj, 2) / noise, rel=1e-5)
        assert row["jacobian_sensitivity"] == pytest.approx(np.linalg.norm(j, 2), rel=1e-5)
        plis = (2 * c @ cj / noise**2).reshape(shape)
        assert np.allclose(result.plis_maps[i], plis, rtol=1e-5, atol=1e-6 * np.abs(plis).max())
        assert row["plis"] == pytest.approx(np.linalg.norm(plis), rel=1e-6)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN, lambda *a, **o: nn.RNN(*a, nonlinearity="relu", **o),
                                  lambda *a, **o: nn.LSTM(*a, proj_size=2, **o)], ids=["lstm", "gru", "tanh", "relu", "projected"])
@pytest.mark.parametrize("options", [{}, {"bias": False}, {"num_layers": 2, "bidirectional": True}, {"batch_first": True}])
def test_recurrent_layers_step_by_step_are_torchs(kind, options):
    """What runs on a GPU, whose own kernels have no derivatives forwards: the same values, and the same leakage."""
    from leakscope._torch_recurrent import step_by_step

    torch.manual_seed(1)
    layer, x = kind(4, 5, **options).double(), torch.randn(6, 3, 4, dtype=F64)
    first = torch.zeros(0) if isinstance(layer, nn.LSTM) else torch.randn(layer.num_layers * (1 + layer.bidirectional), 3, 5, dtype=F64)
    for arguments in ((x,), (x[:, 0],), *(((x, first),) if first.numel() and not options.get("batch_first") else ())):
        expected = layer(*arguments)
        with step_by_step():
            result = layer(*arguments)
        for a, b in zip((result[0], *(result[1] if isinstance(result[1], tuple) else (result[1],))),
                        (expected[0], *(expected[1] if isinstance(expected[1], tuple) else (expected[1],)))):
            assert a.shape == b.shape and torch.allclose(a, b, rtol=1e-12, atol=1e-14)
    packed = nn.utils.rnn.pack_padded_sequence(x, [6, 4, 2])
    with step_by_step():
        again = layer(packed) if not options.get("batch_first") else None
    assert again is None or torch.equal(again[0].data, layer(packed)[0].data)


def test_leakage_of_a_recurrent_module_step_by_step():
    from leakscope._torch_recurrent import step_by_step

    torch.manual_seed(2)
    module, x, y = Recurrent(bidirectional=True, num_layers=2).double(), torch.randn(4, 3, 4, dtype=F64), torch.tensor([0, 1, 0, 1])
    options = dict(trace="exact", eta=True, plis=True, seed=1)
    expected = audit(module, F.cross_entropy, x, y, **options).records
    with step_by_step():
        result = audit(module, F.cross_entropy, x, y, **options).records
    for column in ("loss", "trace", "eta", "plis"):
        assert np.allclose(result[column], expected[column], rtol=1e-9), column


class Encoder(nn.Module):
    """BERT-like: token, place and kind embeddings, attention with a mask, a head over the first token."""

    def __init__(self):
        super().__init__()
        self.word, self.place, self.sort = nn.Embedding(11, 8, padding_idx=0), nn.Embedding(6, 8), nn.Embedding(2, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(8, 2)

    def embedded(self, vectors, token_type_ids, attention_mask):
        places = torch.arange(vectors.shape[1], device=vectors.device)
        h = vectors + self.place(places) + self.sort(token_type_ids)
        return self.head(self.encoder(h, src_key_padding_mask=attention_mask == 0)[:, 0])

    def forward(self, input_ids, token_type_ids, attention_mask):
        return self.embedded(self.word(input_ids), token_type_ids, attention_mask)


def tokens(n=3):
    torch.manual_seed(5)
    mask = torch.ones(n, 5, dtype=torch.long)
    mask[0, 4] = 0
    return {"input_ids": torch.randint(1, 11, (n, 5)) * mask, "token_type_ids": torch.randint(0, 2, (n, 5)), "attention_mask": mask,
            "labels": torch.arange(n) % 2}


def test_integers_leak_over_their_embeddings_which_the_document_names():
    torch.manual_seed(4)
    module, batch = Encoder().double().eval(), tokens()
    result = audit(module, F.cross_entropy, batch, trace="exact", eta=True, seed=0)
    assert any("the embeddings of input_ids" in w for w in result["warnings"])
    assert result["network"]["input"] == [5, 8]
    assert "embeddings of input_ids" in result._outcome.page()
    rest = {k: batch[k] for k in ("token_type_ids", "attention_mask")}
    for i in range(3):
        def gradient_at(vectors):
            """The gradient with the vectors moved, by plain backward; the word table is used by its rows."""
            for p in module.parameters():
                p.grad = None
            words = module.word(batch["input_ids"][i : i + 1])
            out = module.embedded(words + (vectors - words.detach()), *(rest[k][i : i + 1] for k in rest))
            F.cross_entropy(out, batch["labels"][i : i + 1]).backward()
            return torch.cat([(p.grad if p.grad is not None else torch.zeros_like(p)).reshape(-1)
                              for p in module.parameters()]).numpy().copy()

        start = module.word(batch["input_ids"][i : i + 1]).detach()
        j = differences(gradient_at, start)
        assert result.records["trace"][i] == pytest.approx((j**2).sum(), rel=1e-6)
        assert result.records["eta"][i] == pytest.approx(np.linalg.norm(j, 2), rel=1e-5)


def test_hugging_face_batches_and_losses():
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
                                     max_position_embeddings=8, num_labels=2)
    module = transformers.BertForSequenceClassification(config).double().eval()
    batch = tokens(4)
    result = audit(module, None, batch, trace="exact", eta=True, seed=0)
    again = audit(module, nn.CrossEntropyLoss(), batch, trace="exact", seed=0)
    assert np.allclose(result.records["trace"], again.records["trace"], rtol=1e-9)
    with torch.no_grad():
        out = module(**{k: v[1:2] for k, v in batch.items()})
    assert result.records["loss"][1] == pytest.approx(out.loss.item(), rel=1e-9)
    # one direction by differences of plain gradients, through inputs_embeds with the table frozen: without its own gradient
    names = [k for k, _ in module.named_parameters() if "word_embeddings" not in k]
    rest = {k: v[1:2] for k, v in batch.items() if k != "input_ids"}
    start = module.get_input_embeddings()(batch["input_ids"][1:2]).detach()

    def gradient_at(vectors):
        parameters = [p for k, p in module.named_parameters() if k in names]
        loss = module(inputs_embeds=vectors, **rest).loss
        result = torch.autograd.grad(loss, parameters, allow_unused=True)
        return torch.cat([g.reshape(-1) for g in result if g is not None]).numpy()

    j = differences(gradient_at, start)
    some = audit(module, None, batch, trace="exact", trained=names, seed=0)
    assert some.records["trace"][1] == pytest.approx((j**2).sum(), rel=1e-6)
    assert any("embeddings" in w for w in result["warnings"])


# ---- which parameters, which data


def test_trained_parameters_may_be_some():
    torch.manual_seed(0)
    module = Recurrent().double()
    x, y = torch.randn(2, 4, 4, dtype=F64), torch.tensor([0, 1])
    loss = nn.CrossEntropyLoss()
    j = differences(lambda v: gradient(module, loss, v, y[0], ["head.weight", "head.bias"]), x[0])
    by_name = audit(module, loss, x, y, trained=["head.*"], trace="exact")
    last = audit(module, loss, x, y, trained="last", trace="exact")
    module.cell.requires_grad_(False)
    by_flag = audit(module, loss, x, y, trace="exact")
    for result in (by_name, last, by_flag):
        assert result.records["trace"][0] == pytest.approx((j**2).sum(), rel=1e-6)
        assert result["network"]["trained"] == 12 and result["network"]["parameters"] > 12
    with pytest.raises(leakscope.OptionError, match="no parameter is called so"):
        audit(module, loss, x, y, trained="lora")
    module.requires_grad_(False)
    with pytest.raises(leakscope.OptionError, match="requires_grad"):
        audit(module, loss, x, y)


class Pairs(torch.utils.data.Dataset):
    def __init__(self, x, y, kind=tuple):
        self.x, self.y, self.kind = x, y, kind

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return (self.x[i], self.y[i]) if self.kind is tuple else {"x": self.x[i], "labels": self.y[i], "index": i}


def test_tensors_datasets_and_loaders_are_the_same_records():
    torch.manual_seed(0)
    module = Recurrent().double()
    x, y = torch.randn(7, 4, 4, dtype=F64), torch.randint(0, 3, (7,))
    loss, options = nn.CrossEntropyLoss(), dict(trace=3, seed=4, eta=True)
    expected = audit(module, loss, x, y, **options).records
    loader = torch.utils.data.DataLoader
    dicts = Pairs(x, y, dict)
    for data, more in [
        (Pairs(x, y), {}), (torch.utils.data.TensorDataset(x, y), {}), (loader(Pairs(x, y), batch_size=3), {}),
        (loader(dicts, batch_size=2, shuffle=True), {"index": "index"}), ({"x": x, "labels": y}, {}), ({"x": x.numpy(), "y": y}, {}),
    ]:
        result = audit(module, loss, data, chunk=3, **options, **more).records
        for column in expected:
            assert np.allclose(expected[column].astype(float), result[column].astype(float), rtol=1e-9), column
    # a record's numbers do not depend on which others are measured with it, nor on vmap
    alone = audit(module, loss, x, y, records=[5, 2], **options).records
    looped = audit(module, loss, x, y, vectorize=False, **options).records
    assert list(alone.index) == [5, 2]
    assert np.allclose(alone["dfil"], expected["dfil"][[5, 2]], rtol=1e-9)
    assert np.allclose(looped["dfil"], expected["dfil"], rtol=1e-9) and np.allclose(looped["eta"], expected["eta"], rtol=1e-9)


def test_several_inputs_and_functions_as_losses():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 2), nn.Linear(2, 2)

        def forward(self, left, right):
            return self.a(left) * self.b(right)

    module = Two().double()
    left, right, y = torch.randn(4, 3, dtype=F64), torch.randn(4, 2, dtype=F64), torch.randn(4, 2, dtype=F64)

    def loss(output, target):
        return ((output - target) ** 2).sum(dim=-1) ** 1.5

    both = audit(module, loss, (left, right), y, trace="exact")
    by_name = audit(module, loss, {"left": left, "right": right}, y, trace="exact")
    first = audit(module, loss, (left, right), y, trace="exact", secret="0")
    second = audit(module, loss, {"left": left, "right": right}, y, trace="exact", secret=["right"])
    assert both["network"]["input"] == [5] and first["network"]["input"] == [3]
    assert np.allclose(both.records["trace"], by_name.records["trace"])
    assert np.allclose(both.records["trace"], first.records["trace"] + second.records["trace"], rtol=1e-10)


def test_probes_cover_the_exact_trace():
    torch.manual_seed(0)
    module = Residual().double().eval()
    x, y = torch.randn(40, 3, 5, 5, dtype=F64), torch.randint(0, 3, (40,))
    exact = audit(module, nn.CrossEntropyLoss(), x, y, trace="exact").records["dfil"]
    result = audit(module, nn.CrossEntropyLoss(), x, y, trace=8, seed=11)
    rows = result.records
    covered = ((rows["dfil_low"] <= exact) & (exact <= rows["dfil_high"])).mean()
    assert covered >= 0.8  # 95% of 40, and four standard errors
    assert (rows["dfil_standard_error"] > 0).all()
    extremes = result["dfil_extremes"]
    assert extremes["largest"]["lower"] <= exact.max() <= extremes["largest"]["upper"]
    assert result["min_mse"] is None


def test_page_json_arrow_and_pickle(tmp_path):
    import pickle

    torch.manual_seed(0)
    module = Residual().eval()
    x, y = torch.randn(12, 3, 5, 5), torch.randint(0, 3, (12,))
    result = audit(module, nn.CrossEntropyLoss(), x, y, trace="elements", eta=True, plis=True, clip=1.0, sigma=1.0, out=tmp_path / "a")
    assert {"audit.json", "report.html", "records.parquet"} <= {p.name for p in (tmp_path / "a").iterdir()}
    page = (tmp_path / "a" / "report.html").read_text()
    assert "Residual" in page and "data:image/png" in page
    assert len(result["elements"]) == 75 and result["schema"] == "leakscope.net-audit/1"
    assert "Residual" in result.summary() and "data:image/png" not in audit(
        module, nn.CrossEntropyLoss(), x, y, pictures=False)._outcome.page()
    pyarrow = pytest.importorskip("pyarrow")
    assert pyarrow.table(result.table("records")).num_rows == 12
    assert pickle.loads(pickle.dumps(result)).to_json() == result.to_json()


def test_nothing_of_the_caller_changes():
    module = Recurrent()
    x, y = torch.randn(3, 4, 4), torch.tensor([0, 1, 2])
    before = {k: v.clone() for k, v in module.state_dict().items()}
    state = torch.random.get_rng_state()
    audit(module, nn.CrossEntropyLoss(), x, y, eta=True, plis=True)
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(torch.equal(v, before[k]) for k, v in module.state_dict().items())
    assert all(p.grad is None for p in module.parameters()) and torch.backends.mkldnn.enabled
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in module.modules())


@pytest.mark.parametrize("module, x", [
    (nn.Linear(1, 2), torch.randn(3, 1)), (nn.Linear(4, 2), torch.zeros(3, 4)), (nn.Linear(4, 2), torch.ones(3, 4)),
    (nn.Linear(4, 2), 1e8 * torch.randn(1, 4)), (nn.Linear(4, 2), 1e-12 * torch.randn(2, 4)),
])
def test_degenerate_records(module, x):
    result = audit(module, nn.CrossEntropyLoss(), x, torch.zeros(len(x), dtype=torch.long), trace="exact", eta=True, plis=True, clip=1.0)
    numbers = result.records.drop(columns=["label", "right"]).to_numpy(dtype=float)
    assert np.isfinite(numbers).all() and (result.records["eta"] >= 0).all()
    assert (result.records["eta"] ** 2 <= result.records["trace"] * (1 + 1e-4) + 1e-12).all()


def test_a_gradient_that_does_not_depend_on_the_record():
    class Flat(nn.Module):
        def __init__(self):
            super().__init__()
            self.bias = nn.Parameter(torch.zeros(2))

        def forward(self, x):
            return self.bias + 0 * x[:, :2]

    result = audit(Flat(), nn.CrossEntropyLoss(), torch.randn(3, 4), torch.tensor([0, 1, 0]), trace="exact", eta=True, plis=True)
    assert (result.records["eta"] == 0).all() and (result.records["trace"] == 0).all() and (result.records["plis"] == 0).all()


# ---- what is refused


class Mixing(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(3, 2)

    def forward(self, x):
        return self.out(x - x.mean(dim=0))


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(3, 2)
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, x):
        y = self.out(x)
        z = torch.zeros(len(x), 2)
        z += y
        return z


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(3, 2)

    def forward(self, x):
        return self.out(x) if x.sum() > 1e9 else self.out(2 * x)


class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(3, 2)

    def forward(self, x):
        return self.out(x + torch.randn_like(x))


def weighted():
    return nn.CrossEntropyLoss(weight=torch.tensor([1.0, 5.0]))


def by_class(output, y):
    """A mean that divides by the weights of the labels that are there, as a function."""
    return F.cross_entropy(output, y, weight=torch.tensor([1.0, 5.0]))


class BatchStatistics(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(3, 2)

    def forward(self, x):
        return F.batch_norm(self.head(x), None, None, training=True)


@pytest.mark.parametrize("module, loss, words", [
    (nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)), F.cross_entropy, r"1 \(BatchNorm1d\).*eval.*GroupNorm"),
    (nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2)), F.cross_entropy, r"1 \(Dropout\).*eval"),
    (Mixing(), F.cross_entropy, "depends on the other records"),
    (Counting(), F.cross_entropy, "in place.*torch says"),
    (Branching(), F.cross_entropy, "torch.where.*vectorize=False"),
    (Noisy(), F.cross_entropy, "draws at random"),
    (nn.Linear(3, 2), weighted(), r"class weights and reduction='mean'.*reduction='sum'"),
    (nn.Linear(3, 2), by_class, "neither the sum nor the mean.*reduction='sum'"),
    (BatchStatistics(), F.cross_entropy, "batch_norm.*GroupNorm"),
    (nn.Linear(3, 2, device="meta"), F.cross_entropy, "meta device.*load_state_dict"),
    (nn.Linear(3, 2), lambda o, y: o[:, 0], "target|loss"),
    (nn.Linear(3, 2), nn.MSELoss(reduction="none"), "2 values.*reduction|do not run"),
    (nn.Linear(3, 2), lambda o, y: 1.0, "gave a float"),
    (nn.Linear(3, 2), None, "no loss"),
    (nn.Linear(3, 2), 7, "expected a loss"),
    (nn.Linear(5, 2), F.cross_entropy, "do not run on these records"),
    (nn.Flatten(), F.cross_entropy, "no parameters"),
    ("model.onnx", F.cross_entropy, "ONNX"),
    (torch.jit.script(nn.Linear(3, 2)), F.cross_entropy, "TorchScript"),
])
def test_what_no_record_owns_is_refused_with_what_to_change(module, loss, words):
    x, y = torch.randn(6, 3), torch.tensor([0, 1, 0, 1, 1, 0])
    if words == "target|loss":
        # a loss that ignores its target is a loss
        assert len(audit(module, loss, x, y).records) == 6
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(leakscope.LeakscopeError, match=f"(?s){words}"):
            audit(module, loss, x, y)


def test_weights_of_classes_show_though_neighbours_are_of_one_class():
    """The records that are looked at have different labels, wherever these are."""
    y = torch.zeros(40, dtype=torch.long)
    y[37] = 1
    with pytest.raises(leakscope.OptionError, match="neither the sum nor the mean"):
        audit(nn.Linear(3, 2), by_class, torch.randn(40, 3), y)


def test_tangents_of_few_records_ride_together(monkeypatch):
    """One record of many values is no slower than many records: what fits into memory is filled with its tangents."""
    seen = []
    from leakscope._torch_products import TorchProducts

    inner = TorchProducts.tangents
    monkeypatch.setattr(TorchProducts, "tangents", lambda self, u: seen.append(u.shape[:2]) or inner(self, u))
    module, x = nn.Sequential(nn.Linear(96, 4), nn.Tanh(), nn.Linear(4, 2)).double(), torch.randn(2, 96, dtype=F64)
    y = torch.tensor([0, 1])
    result = audit(module, F.cross_entropy, x, y, trace="exact")
    assert seen == [(64, 2), (32, 2)]
    one_by_one = audit(module, F.cross_entropy, x, y, trace="exact", chunk=1)
    assert np.allclose(result.records["trace"], one_by_one.records["trace"], rtol=1e-12)


def test_a_mean_over_the_batch_is_said():
    x, y = torch.randn(6, 3), torch.tensor([0, 1, 0, 1, 1, 0])
    result = audit(Branching(), nn.CrossEntropyLoss(), x, y, vectorize=False)
    assert any("(reduction='mean') is a mean over the batch" in line for line in result["warnings"])


def test_data_dependent_control_flow_runs_record_by_record():
    module = Branching().double()
    x, y = torch.randn(3, 3, dtype=F64), torch.tensor([0, 1, 0])
    result = audit(module, F.cross_entropy, x, y, vectorize=False, trace="exact", eta=True, plis=True)
    j = differences(lambda v: gradient(module, F.cross_entropy, v, y[2]), x[2])
    assert result.records["trace"][2] == pytest.approx((j**2).sum(), rel=1e-6)


@pytest.mark.parametrize("data, y, options, words", [
    (torch.randn(3, 4), torch.tensor([0, 1]), {}, "as many records"),
    (torch.randn(0, 4), torch.zeros(0, dtype=torch.long), {}, "no records"),
    (torch.tensor(1.0), torch.tensor([0]), {}, "a row for every record"),
    (torch.tensor([[1.0, float("nan"), 0, 0]]), torch.tensor([0]), {}, "record 0.*not finite"),
    (torch.randint(0, 9, (3, 4)), torch.tensor([0, 1, 0]), {}, "no torch.nn.Embedding"),
    (torch.randn(3, 4, device="meta"), torch.tensor([0, 1, 0]), {}, r"on meta, the module is on cpu.*\.to\('cpu'\)"),
    (torch.utils.data.TensorDataset(torch.randn(3, 4, device="meta"), torch.tensor([0, 1, 0])), None, {}, "meta device.*no values"),
    (torch.randn(3, 4), torch.tensor([0, 1, 0]), {"secret": "x"}, "the inputs of a record are 0"),
    (torch.randn(3, 4), torch.tensor([0, 1, 0]), {"trace": 1}, "whole number from 2"),
    (torch.randn(3, 4), torch.tensor([0, 1, 0]), {"sigma": 0}, "positive"),
    (torch.randn(3, 4), torch.tensor([0, 1, 0]), {"clip": -1.0}, "clip=-1.0"),
    (torch.randn(3, 4), torch.tensor([0, 1, 0]), {"clip_kind": "gelu"}, "give the bound"),
    (torch.randn(3, 4), torch.tensor([0, 1, 0]), {"grid": 2}, "grid.*kernels"),
    (torch.randn(3, 4), torch.tensor([0, 1, 0]), {"grad": 2}, "no such option"),
    (torch.randn(3, 4), torch.tensor([0, 1, 0]), {"records": [7]}, "records"),
])
def test_bad_records_and_options(data, y, options, words):
    with pytest.raises(leakscope.LeakscopeError, match=f"(?s){words}"):
        audit(nn.Linear(4, 2), nn.CrossEntropyLoss(), data, y, **options)


def test_a_loader_that_shuffles_is_refused():
    data = Pairs(torch.randn(6, 4), torch.zeros(6, dtype=torch.long))
    loader = torch.utils.data.DataLoader(data, batch_size=2, shuffle=True)
    with pytest.raises(leakscope.OptionError, match="shuffles.*shuffle=False.*index="):
        audit(nn.Linear(4, 2), nn.CrossEntropyLoss(), loader)
