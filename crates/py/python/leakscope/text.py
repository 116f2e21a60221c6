"""Language models: what fine-tuning on a text gives away.

:func:`train` fine-tunes a model on a list of texts, in private where there is noise, by text or by user.
:func:`audit` measures what one noisy step of fine-tuning tells about each of a list of texts, and which words. :func:`canary` plays the extraction game of Guo et al. (2022, §6.3) on a model of Hugging Face (GPT-2, Llama) or llama2.c, and bounds
what anybody can pull out of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from . import _native, _progress
from ._docs import documented
from ._net_results import Training
from ._requests import Path, Progress, listed, release, run
from ._results import Result

__all__ = ["Canary", "TextAudit", "TextTraining", "audit", "canary", "train"]


def _source(options: Mapping[str, Any]) -> dict[str, Any]:
    """The model, what of it is fine-tuned, and the texts."""
    return {"list": listed(options["texts"]), **{name: options[name] for name in ("model", "tokenizer", "long", "layers", "rank")}}


class TextAudit(Result):
    """What an audit of texts found: ``records`` has a row for each, ``document["records"][i]["plis_tokens"]`` PLIS of its tokens."""

    @cached_property
    def records(self) -> Any:
        """A frame with a row for every text."""
        return self._listed(self._RECORDS)


@documented(texts="The texts, one a record, or a single one.",
            model="A folder as transformers saves GPT-2 or Llama, or a llama2.c checkpoint.",
            tokenizer="Its tokeniser. By default that of the folder.",
            long="What becomes of a text that is longer than the context: ``\"refuse\"`` or ``\"split\"``.",
            layers="What is fine-tuned: ``\"all\"``, ``\"last\"`` or ``\"adapters\"`` (low-rank, beside every dense layer).",
            rank="Rank of adapters, at least 1.",
            clip="Norm that gradients are clipped to, C. By default they are not.",
            clip_kind="``\"hard\"``, ``\"gelu\"`` or ``\"none\"``.",
            sigma="Noise multiplier: noise has standard deviation σC. By default a unit of noise.",
            trace="The trace of the information: ``\"exact\"``, a number of random probes, or ``\"skip\"``.",
            eta="Whether η is measured, the most costly part.",
            plis="Of which gradient PLIS is: ``\"raw\"`` or ``\"released\"``.",
            secret="Secrets in the texts whose exposure is asked for.",
            secret_pattern="What they might be, as in :func:`canary`.",
            show="Whether texts are shown on the page.",
            seed="Seed of probes and adapters. Drawn by default.",
            device="Where the model computes: ``\"cpu\"``, ``\"cuda\"``, ``\"cuda:1\"`` (the number of a GPU) or ``\"auto\"``.",
            precision="Numbers that the model computes with: ``\"f32\"``, ``\"f64\"`` or, on a GPU, ``\"tf32\"``.")
def audit(
    texts: Sequence[str] | str,
    model: Path,
    *,
    tokenizer: Path | None = None,
    long: str = "refuse",
    layers: str = "all",
    rank: int = 8,
    clip: float | None = None,
    clip_kind: str | None = None,
    sigma: float | None = None,
    trace: str | int = 10,
    eta: bool = True,
    plis: str = "raw",
    secret: Sequence[str] | str | None = None,
    secret_pattern: str | None = None,
    show: bool = True,
    redact: bool = False,
    seed: int | None = None,
    precision: str = "f32",
    device: str = "cpu",
    out: Path | None = None,
    progress: Progress = None,
) -> TextAudit:
    """What one noisy step of fine-tuning on texts tells about each of them, and which words.

    Returns
    -------
    TextAudit
        Loss, norm of the gradient, dFIL, η and PLIS of every text, the page.
    """
    values = {"source": _source(locals()), "release": release(locals()),
              "trace": trace if isinstance(trace, str) else {"probes": trace}, "eta": eta, "plis": plis,
              "secrets": listed(secret), "secret_pattern": secret_pattern, "show": show, "redact": redact, "seed": seed, "precision": precision, "device": device}
    with _progress.shown(progress) as told:
        return TextAudit(_native.text_audit(values, told))._kept(out)


class TextTraining(Training):
    """What a run of fine-tuning did: ``model`` is the folder (or the llama2.c checkpoint) that it left, which :func:`audit`,
    :func:`canary` and transformers read; with ``track``, ``records`` has what every text has given away."""

    #: where the model was written
    model: Any = None


@documented(texts="The texts, one a record, or a single one.",
            model="A folder as transformers saves GPT-2 or Llama, or a llama2.c checkpoint; taken to be public.",
            out="Folder for the model (in ``model``), the document, the page, accounts and the checkpoint.",
            users="Whose each text is: users are drawn and clipped with all their texts, and ε is for a user. By default for a text.",
            tokenizer="Its tokeniser. By default that of the folder.",
            long="What becomes of a text that is longer than the context: ``\"refuse\"`` or ``\"split\"``; one that is cut is still "
                 "clipped whole.",
            test="Texts that are not trained on, to see how well such are predicted. Nothing is promised to them.",
            holdout="Another name of ``test``, which it had before.",
            layers="What is fine-tuned: ``\"all\"``, ``\"last\"`` or ``\"adapters\"`` (low-rank, beside every dense layer).",
            rank="Rank of adapters, at least 1.",
            epochs="Passes over the texts, above 0.",
            steps="Number of steps, at least 1, instead of ``epochs``.",
            batch="Texts (or users) that a step is expected to draw.",
            rate="Probability of each to be drawn in a step; the sum of gradients is then divided by ``batch``, and their number stays "
                 "private. By default ``batch`` over their number, which is taken to be public.",
            lr="Learning rate, above 0.",
            momentum="Momentum of SGD, at least 0, below 1.",
            adam="Whether Adam moves the weights, instead of SGD.",
            clip="Norm that gradients are clipped to, C. By default 1 where there is noise.",
            clip_kind="``\"hard\"``, ``\"gelu\"`` or ``\"none\"``.",
            sigma="Noise multiplier: noise has standard deviation σC.",
            epsilon="Instead of ``sigma``: the noise for which the whole run has this ε.",
            delta="δ of the privacy statement. By default 1e-5.",
            weight_decay="Weight decay, at least 0: this share of the weights, times the learning rate, is taken off in every step.",
            track="Keep what texts give away: ``\"panel\"``, ``\"drawn\"`` or ``\"every\"``.",
            probes="Random probes of each trace that ``track`` keeps.",
            filter_epsilon="Drop a text (or user) from further steps before the run would cost it more than this ε.",
            checkpoint_every="Write a checkpoint after every so many steps.",
            resume="Go on from the checkpoint in ``out``, with the same settings.",
            seed="Seed of first adapters and probes, in a run without noise also of its batches. Drawn by default.",
            not_private_noise_from_seed="Let batches and noise follow from the seed too, so that the run can be repeated: no ε is stated.",
            device="Where the model computes: ``\"cpu\"``, ``\"cuda\"``, ``\"cuda:1\"`` (the number of a GPU) or ``\"auto\"``.",
            precision="Numbers that the model computes with: ``\"f32\"``, ``\"f64\"`` or, on a GPU, ``\"tf32\"``.")
def train(
    texts: Sequence[str] | str,
    model: Path,
    *,
    out: Path,
    users: Sequence[str] | None = None,
    tokenizer: Path | None = None,
    long: str = "refuse",
    test: Sequence[str] | str | None = None,
    holdout: Sequence[str] | str | None = None,
    layers: str = "all",
    rank: int = 8,
    epochs: float | None = None,
    steps: int | None = None,
    batch: float = 32.0,
    rate: float | None = None,
    lr: float = 0.1,
    momentum: float = 0.9,
    adam: bool = False,
    clip: float | None = None,
    clip_kind: str | None = None,
    sigma: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    weight_decay: float = 0.0,
    track: str | None = None,
    probes: int = 4,
    filter_epsilon: float | None = None,
    checkpoint_every: int | None = None,
    resume: bool = False,
    redact: bool = False,
    seed: int | None = None,
    not_private_noise_from_seed: bool = False,
    precision: str = "f32",
    device: str = "cpu",
    progress: Progress = None,
) -> TextTraining:
    """Fine-tunes a language model on texts, in private where there is noise.

    Which texts a step draws and the noise come from the system's generator: the key is in ``out/private`` alone. Where the verdict
    is calm enough, the folder ``out/model`` may leave the house, nothing else.

    Returns
    -------
    TextTraining
        ε and what it rests on, accounts of texts, where the model is, the page.
    """
    values = {"source": _source(locals()), "run": run(locals()), "users": listed(users), "batch": batch,
              "test_list": listed(test if test is not None else holdout)}
    with _progress.shown(progress) as told:
        done = TextTraining(_native.text_train(values, os.fspath(out), told), rate)
    folder = os.path.join(os.fspath(out), "model")
    file = os.path.basename(os.fspath(model))
    done.model = folder if os.path.isdir(os.fspath(model)) else os.path.join(folder, file)
    return done


class Canary(Result):
    """What the extraction game found: ``document["points"]`` has bounds and attacks by noise and number of steps."""


@documented(model="A folder as transformers saves GPT-2 or Llama, or a llama2.c checkpoint.",
            tokenizer="Its tokeniser. By default that of the folder.",
            prompt="The text before the secret.",
            candidates="What the secret may be: a list of texts. By default every token of the vocabulary.",
            pattern="Another name of ``secret_pattern``, which it had before.",
            secret_pattern="The same as a pattern: ``#`` is a digit, ``{luhn}`` the check digit of those before it, ``{date:1980-1989}`` a "
                    "day, ``{a|b}`` a choice.",
            secret_tokens="Tokens of the secret where no candidates are named; of more than one, some sequences are drawn.",
            prior="How likely each candidate is beforehand: ``\"uniform\"`` or ``\"model\"``, as the model holds it to be.",
            clip="Norm that gradients are clipped to, C.",
            lr="Learning rate, above 0.",
            sigmas="Noise multipliers. By default eight, so that 2T/σ² is 1 to 1000.",
            steps="Numbers of steps T.",
            layers="What is fine-tuned: ``\"last\"``, ``\"all\"``, ``\"adapters\"`` (low-rank, beside every dense layer) or several.",
            rank="Rank of adapters, at least 1.",
            trials="Games played for every noise and number of steps; 0 for bounds alone.",
            device="Where the model computes: ``\"cpu\"``, ``\"cuda\"``, ``\"cuda:1\"`` (the number of a GPU) or ``\"auto\"``.",
            seed="Seed of secrets and noise. Drawn by default.")
def canary(
    model: Path,
    *,
    tokenizer: Path | None = None,
    prompt: str = "John Smith's credit card number is",
    candidates: Sequence[str] | None = None,
    secret_pattern: str | None = None,
    pattern: str | None = None,
    secret_tokens: int = 1,
    prior: str = "uniform",
    clip: float = 1.0,
    lr: float = 0.1,
    sigmas: Sequence[float] | None = None,
    steps: Sequence[int] = (1, 2, 5),
    layers: Sequence[str] = ("last",),
    rank: int = 8,
    trials: int = 1000,
    seed: int | None = None,
    device: str = "cpu",
    out: Path | None = None,
    progress: Progress = None,
) -> Canary:
    """Can a secret be pulled out of a model that was fine-tuned on it?

    Returns
    -------
    Canary
        Bounds for every attacker, what attacks achieved, the page.
    """
    values = {"model": model, "tokenizer": tokenizer, "prompt": prompt, "list": listed(candidates), "secret_pattern": secret_pattern or pattern,
              "secret_tokens": secret_tokens, "prior": prior, "clip": clip, "lr": lr, "sigmas": listed(sigmas),
              "steps": listed(steps), "layers": listed(layers), "rank": rank, "trials": trials, "seed": seed, "device": device}
    with _progress.shown(progress) as told:
        return Canary(_native.text_canary(values, told))._kept(out)
