"""Networks over the rows of a table: a frame or files in, a trained network and its run out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from . import _native, _progress, _requests
from ._docs import documented
from ._net_results import Training
from ._network import Network, _budgets
from ._requests import Path, Progress, listed, other, pairs, public, reading
from ._tables import level


@documented(
    network="A preset (``\"linear\"``, ``\"mlp\"``, …) or a network file in JSON.",
    loss="Loss of a preset. By default ``\"squared-error\"`` for a number, ``\"softmax-cross-entropy\"`` for classes.",
    test="Rows to measure accuracy on: files, a frame, or a pair of rows and targets.",
    holdout="Share of rows, between 0 and 1, that are not trained on, to measure accuracy on.",
    steps="Steps. By default what ``epochs`` takes.",
    epochs="Passes over the data, above 0. By default 1.",
    batch="Records in a batch, at most all; with Poisson sampling the expected number.",
    lr="Learning rate, above 0.",
    momentum="Momentum of SGD, at least 0, below 1.",
    adam="Whether Adam moves the weights, instead of SGD.",
    clip="Clip the gradient of every record at this norm C, above 0. By default 1 where there is noise.",
    sigma="Noise multiplier of DP-SGD: the noise on the sum of gradients has standard deviation σC.",
    epsilon="Instead of ``sigma``: the noise for which the whole run costs this ε at ``delta``.",
    delta="δ of the privacy statement, above 0, below 1. By default 1e-5.",
    sampling="How batches are drawn: ``\"poisson\"`` (what accountants assume) or ``\"shuffle\"``.",
    rate="Probability of each record to be drawn in a step; ``batch`` is then what the sum of gradients is divided by.",
    weight_decay="Weight decay, zero or more.",
    track="Keep what records give away: of a random ``\"panel\"`` at every step and besides of those drawn (``True`` is the same), "
          "of those ``\"drawn\"`` alone, or of ``\"every\"`` one at every step.",
    probes="Random probes of each trace that ``track`` keeps.",
    label="Whether the label is part of the secret that ``track`` keeps account of: ``\"public\"`` or ``\"secret\"``.",
    seed="Seed of the initial weights, of probes and of the rows held out. By default drawn from the system.",
    not_private_noise_from_seed="Let batches and noise follow from the seed too. Whoever knows the seed can take the noise off: "
                                "no ε is stated.",
    filter_epsilon="Drop a record from further steps before the run would cost it more than this ε (at ``delta``).",
    filter_budgets="The same by record: a column of the table, a file with one number a line, or a number for each record.",
    unit="Units of attributes for the page, such as ``{\"age\": \"years\"}``.",
    precision="Numbers to compute with: ``\"f32\"``, ``\"f64\"`` or, on a GPU, ``\"tf32\"``.",
    device="Where to compute: ``\"cpu\"``, ``\"cuda\"``, ``\"cuda:1\"`` (the number of a GPU) or ``\"auto\"``.",
    out="Folder to keep the run in: network, weights, document, page, table of records, and how the table was encoded.",
)
def train_network(
    data: Any,
    y: Any = None,
    *,
    network: str = "mlp",
    loss: str | None = None,
    target: str | None = None,
    id: Any = None,
    drop: Sequence[str] | str = (),
    categorical: Sequence[str] | str = (),
    columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    na: Sequence[str] | str = (),
    one_hot: str = "drop-last",
    scale: str = "standard",
    pca: int | None = None,
    missing: str = "fail",
    positive: Any = None,
    schema: Mapping[str, Any] | Path | None = None,
    bounds: Mapping[str, Any] | None = None,
    levels: Mapping[str, Sequence[str]] | Path | None = None,
    clip_to_bounds: bool = False,
    min_level_count: int | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool = True,
    test: Any = None,
    holdout: float | None = None,
    steps: int | None = None,
    epochs: float | None = None,
    batch: float = 256,
    rate: float | None = None,
    lr: float = 0.1,
    momentum: float = 0.9,
    adam: bool = False,
    clip: float | None = None,
    clip_kind: str | None = None,
    sigma: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    sampling: str = "poisson",
    weight_decay: float = 0.0,
    track: str | bool | None = None,
    probes: int = 4,
    label: str = "public",
    seed: int | None = None,
    not_private_noise_from_seed: bool = False,
    filter_epsilon: float | None = None,
    filter_budgets: str | Path | Sequence[float] | None = None,
    unit: Mapping[str, str] | None = None,
    redact: bool = False,
    precision: str = "f32",
    device: str = "cpu",
    out: Path | None = None,
    progress: Progress = None,
) -> Training:
    """Trains a network on the rows of a table, encoded as :func:`leakscope.audit` encodes them.

    Returns
    -------
    Training
        The run; its ``network`` is the trained :class:`Network`, whose :meth:`Network.audit` takes the table again and says
        which attribute of whom a step gives away, in the table's units.

    Examples
    --------
    >>> import numpy as np, pandas as pd, leakscope
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"age": rng.normal(50, 10, 200), "sex": rng.choice(["f", "m"], 200)})
    >>> table["dose"] = 0.1 * table["age"] + rng.normal(size=200)
    >>> run = leakscope.train_network(table, target="dose", network="linear", batch=50, steps=20, sigma=1.0, seed=1)
    >>> result = run.network.audit(table, sigma=1.0, clip=1.0, trace="exact")
    >>> sorted(a["name"] for a in result["attributes"])
    ['age', 'sex']
    """
    options = {**locals(), "group": None, "weights": None}
    how = _requests.run(options)
    source = _requests.opened(data, y, options)
    rows = other(test, source, columns, "test", True)
    table = {
        "read": {**reading(source.files, options), "paths": []},
        "roles": {"target": source.target or "", "id": source.id, "drop": [*map(str, listed(drop)), *source.drop],
                  "categorical": listed(categorical)},
        "one_hot": one_hot, "scale": scale, "pca": pca, "missing": missing,
        "positive": None if positive is None else level(positive), "public": public(options), "min_level_count": min_level_count,
        "holdout": holdout, "units": pairs("unit", unit),
    }
    request = {
        "data": list(source.files), "table": table, "test": list(rows.files) if rows is not None else [],
        "network": network, "loss": loss, "batch": batch, "sampling": sampling, "label": label, "run": how,
        **_budgets(filter_budgets),
    }
    with _progress.shown(progress) as callback:
        native, outcome, coding = _native.train_rows(request, source.table, None if rows is None else rows.table, callback)
    run = Training(outcome, None)
    run.network = Network._trained(native, coding, json.dumps(run.document))
    return run._kept(out)
