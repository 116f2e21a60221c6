"""Documents that the Python package alone writes, as types. Their schemas in ``docs/schemas`` are generated from these, and those of all
other documents from the types in Rust."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict


class Interval(TypedDict):
    """A number that was observed, with where it lies."""

    value: Annotated[float, "What was observed."]
    low: Annotated[float, "Lower end of its interval."]
    high: Annotated[float, "Upper end of its interval."]


class Share(Interval):
    """A share of right guesses, with its interval."""

    trials: Annotated[int, "Guesses that were made."]


class AtRate(TypedDict):
    """Members found while few others are taken for members."""

    asked: Annotated[float, "The false-positive rate that the threshold was chosen for."]
    false_positive_rate: Annotated[Share, "The one that came out, on records that the threshold was not chosen on."]
    true_positive_rate: Annotated[Share, "Members that were found."]


class Membership(TypedDict):
    """Who was among the training records, guessed by how well the model fits a record."""

    accuracy: Annotated[Share, "Right guesses over members and non-members in equal numbers."]
    baseline: Annotated[float, "What a guess without the model gets."]
    advantage: Annotated[Share, "True-positive rate less false-positive rate."]
    true_positive_rate: Annotated[Share, "Members that were found."]
    false_positive_rate: Annotated[Share, "Non-members that were taken for members."]
    auc: Annotated[float, "How often a member fits better than a non-member; ties count half."]
    at_rates: Annotated[list[AtRate], "The same at small false-positive rates, where there are records enough for them."]
    generalisation_gap: Annotated[float, "Mean log-likelihood of members less that of non-members."]


class Attribute(TypedDict):
    """A column of a record, guessed from all others, its label and the model's answers."""

    secret: Annotated[str, "The column."]
    candidates: Annotated[list[str], "Values that were tried; medians of bins where the column has many numbers."]
    accuracy: Annotated[Share, "Right guesses over training records."]
    baseline: Annotated[float, "What guessing the most frequent value gets."]
    advantage: Annotated[Interval, "What the guesses get beyond the baseline, as a share of what is left above it."]
    nonmembers: Annotated[Share | None, "The same guesses on records that were not trained on."]
    beyond_population: Annotated[Interval | None, "Accuracy on training records less that on others: what the model gives away about its own."]


class ModelAttack(TypedDict):
    """Black-box attacks on anything that predicts: `leakscope.attack_model`."""

    schema: Annotated[Literal["leakscope.model-attack/1"], "Name and version of this schema: a field that changes its meaning raises the number."]
    model: Annotated[str, "What was attacked, by its type or name."]
    members: Annotated[int, "Training records."]
    nonmembers: Annotated[int, "Records of the same population that were not trained on."]
    confidence: Annotated[float, "Confidence of the intervals."]
    interval: Annotated[Literal["clopper-pearson", "wilson"], "How the intervals of shares were computed."]
    seed: Annotated[int, "Seed of the halves that thresholds are chosen and tried on."]
    membership: Annotated[Membership | None, "Who was among the training records; absent without non-members."]
    attribute: Annotated[Attribute | None, "A column guessed; absent where none was named."]
    warnings: Annotated[list[str], "Things the reader should know, in whole sentences."]


class SquaredError(TypedDict):
    """A mean over records, with its interval."""

    value: Annotated[float, "The mean."]
    low: Annotated[float, "Lower end of its 95% interval."]
    high: Annotated[float | None, "Upper end; absent for one record, which has none."]
    trials: Annotated[int, "Records."]


class Inversion(TypedDict):
    """Records put together again from their own clipped, noisy gradient."""

    records: Annotated[int, "Records that were attacked."]
    sigma: Annotated[float, "Noise multiplier."]
    clip_kind: Annotated[Literal["none", "hard", "gelu"], "How gradients were clipped."]
    clip: Annotated[float | None, "Norm they were clipped to; absent without a clip."]
    noise: Annotated[float, "Standard deviation of the noise on every parameter."]
    steps: Annotated[int, "Steps of the optimiser."]
    starts: Annotated[int, "Points it started from."]
    squared_error: Annotated[SquaredError, "Mean squared error per value."]
    baseline: Annotated[float, "That of guessing the mean of all records."]
    closer_than_the_mean: Annotated[Share, "Records that were guessed better than by that mean."]


class TorchAttack(TypedDict):
    """Attacks on a PyTorch module: `leakscope.torch.attack`."""

    schema: Annotated[Literal["leakscope.torch-attack/1"], "Name and version of this schema: a field that changes its meaning raises the number."]
    model: Annotated[str, "The module's class."]
    records: Annotated[int, "Records that were given."]
    seed: Annotated[int, "Seed of the noise and of the halves."]
    confidence: Annotated[float, "Confidence of the intervals of shares."]
    membership: Annotated[Membership | None, "Who was among the training records; absent without non-members."]
    inversion: Annotated[Inversion | None, "Records from gradients; absent where none was asked for."]
    warnings: Annotated[list[str], "Things the reader should know, in whole sentences."]


#: The schemas by name.
DOCUMENTS: dict[str, type] = {"model-attack": ModelAttack, "torch-attack": TorchAttack}
