"""Parameters of docstrings: what a keyword means is written once here, and every function that has it shows it."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])

#: what keywords mean wherever they occur; a function may say it in its own words
PARAMETERS = {
    # the table
    "data": "The table: an array of rows × columns, a DataFrame of pandas, polars or pyarrow (or anything with "
            "``__arrow_c_stream__``), or names of files: CSV (also gzipped), JSON lines, Parquet, Feather.",
    "x": "The target of an array or a frame: one value a row. With an estimator, the rows that it was fitted on.",
    "y": "The target: one value a row. Leave it out where ``target`` names a column.",
    "target": "Name of the column to predict. With ``y`` it only says what the target is called.",
    "id": "What names a record: a column's name, or a value for every row. Without it the index of a frame does, or the "
          "row number.",
    "drop": "Columns to leave out: a name, or several.",
    "categorical": "Columns that are categories although they look like numbers.",
    "weights": "Sample weights, zero or more: a column's name, or a value for every row.",
    "sample_weight": "Another name of ``weights``, as scikit-learn has it.",
    "group": "Groups that are compared: a column's name (it stays a feature unless dropped), or a value for every row.",
    "columns": "Names of the columns of an array. By default ``x0``, ``x1``, …",
    "delimiter": "Field delimiter of CSV files: one character, or ``\"tab\"``. Guessed by default.",
    "na": "Further markers of missing values in CSV files, besides empty, NA, NaN, null, ? and the like.",
    "one_hot": "Which levels of a category get a column: ``\"drop-last\"``, ``\"drop-first\"`` or ``\"full\"``.",
    "scale": "How numbers are scaled: ``\"standard\"`` (mean 0, standard deviation 1), ``\"none\"`` or ``\"unit-ball\"`` (by "
             "the largest norm of a row).",
    "pca": "Keep this many principal components instead of the columns.",
    "missing": "What to do where a value is missing: ``\"fail\"``, ``\"drop\"`` (leave the row out) or ``\"mean\"`` (fill in "
               "the mean, or the most frequent level).",
    "positive": "The class that is coded high. By default the second in sorted order.",
    "schema": "A schema that lists all columns with their kinds, bounds, levels and units: a JSON file, or a mapping.",
    "bounds": "Public ranges of numbers or dates, such as ``{\"age\": (0, 100)}`` or ``{\"born\": \"1900-01-01..2020-12-31\"}``.",
    "levels": "Public levels of categories, such as ``{\"sex\": [\"f\", \"m\"]}``, or a JSON file of such.",
    "clip_to_bounds": "Move values outside their bounds to the nearest bound.",
    "min_level_count": "Merge levels that fewer records have into ``other``, unless they were given.",
    "decimal": "What separates fractions in text files: ``\".\"`` or ``\",\"``.",
    "text_encoding": "Encoding of text files: ``\"utf-8\"``, ``\"latin-1\"`` or ``\"utf-16\"``.",
    "header": "Whether CSV files have a line of names; without one columns are called ``c1``, ``c2``, …",
    # the model
    "model": "``\"linear\"``, ``\"logistic\"`` (two classes), ``\"poisson\"`` (counts), ``\"gamma\"`` (positive numbers), ``\"tweedie\"`` (zeros and "
             "positive numbers), ``\"squared-hinge\"`` (two classes, a linear support vector machine), ``\"huber\"`` (numbers, some far out) or "
             "``\"softmax\"`` (two or more classes).",
    "power": "Power of the variance of a tweedie model, from 1 (Poisson) to 2 (gamma). By default 1.5.",
    "huber_threshold": "Error beyond which a huber model counts its size alone, in the unit of the target. By default 1.35.",
    "max_classes": "Classes that the target of a softmax model may have.",
    "l2": "Penalty λ ≥ 0 in Σ loss + (nλ/2)‖w‖²; the intercept is not penalised.",
    "fit_intercept": "Whether the model has an intercept.",
    "coefficients": "A model that was trained elsewhere: values by column as encoded here (with ``scale=\"none\"`` as in the "
                    "table), or a JSON file of such.",
    # noise
    "sigma": "Standard deviation of the Gaussian noise on every coefficient of the columns as encoded, above 0.",
    "target_eta": "Instead of ``sigma``: solve for the noise at which the ``statistic`` of η over records is this, above 0.",
    "statistic": "The statistic of η: ``\"max\"``, ``\"mean\"`` or ``\"p99\"`` (the 99th percentile).",
    "target_sd": "Instead of ``sigma``: attributes, each with a standard deviation in its own units, such as ``{\"age\": 5}``: "
                 "solve for the noise at which no unbiased estimate of them is closer, for any record.",
    "noise_shape": "Shape of the noise: ``\"isotropic\"`` (the same on every coefficient), ``\"shaped\"`` (a closed form that costs less) "
                   "or ``\"optimal\"`` (the cheapest, up to ``gap``). The last two need a target.",
    "protect": "Attributes (or the target) that ``target_eta`` is for. By default it is for whole records.",
    "shape_budget": "Largest share of η² that the shape itself may give away, above 0 and at most 1: beyond, the shape is taken from "
                    "public bounds, or the noise is isotropic.",
    "shape_from": "A public table of the same columns, from which the shape is taken: it then says nothing about the records. Files, "
                  "a frame, or a pair of rows and targets.",
    "gap": "How close to the cheapest an optimal shape must be, at least 0.0001.",
    "releases": "How many times the model is released, each time with fresh noise.",
    "label": "Whether the target is part of a record's secret: ``\"secret\"`` or ``\"public\"``.",
    "test": "Rows to measure utility on: files, a frame, or a pair of rows and targets.",
    "holdout": "Share of rows, between 0 and 1, that are held out of the fit to measure utility on.",
    "seed": "Seed of what is drawn. By default drawn from the system, and kept in the document.",
    "score": "Points that were not trained on, to be measured too: files, a frame or an array; with targets a pair.",
    "prior_sd": "What an attacker knows of attributes beforehand, as standard deviations in their own units. By default the "
                "population's.",
    "unit": "Units of attributes, for display, such as ``{\"age\": \"years\"}``.",
    "fail_above": "Limits on statistics of η, such as ``{\"max\": 0.1}``, ``\"p99\"`` or ``\"mean\"``; "
                  "``within_limits`` says whether they hold.",
    "secret": "An attribute whose guessing is bounded and tried.",
    "tell": "Two values of attributes to tell apart, such as ``{\"age\": (40, 60)}``. By default the 10% and 90% quantiles of "
            "numbers, each record's own value and the median, and any two levels of categories.",
    "protect_at": "Values that are told apart at most this often count as protected, between 0.5 and 0.75.",
    "tell_budget": "About how long telling values apart may take, in seconds of an ordinary machine, or ``\"all\"``: as long as it "
                   "takes. The most exposed come first, and a page that leaves any out is never green.",
    "scaling": "Whether leakage counts that columns are scaled by their own data: ``\"counted\"`` or ``\"given\"``.",
    "redact": "Name and show no record on the page, for sharing it: document and tables stay as they are.",
    "out": "Folder to keep document, page and tables in, as the command line leaves them.",
    "progress": "``True`` or ``False`` for a bar (tqdm, where it is installed), or a callable that takes a stage, what is "
                "done and the total. By default a bar where somebody watches.",
    # balance
    "attribute": "Balance what leaks about this attribute. By default about whole records.",
    "sum_to_one": "Take the indicators of the category ``attribute`` to sum to one.",
    "weights_per": "Which records share a weight: ``\"sample\"`` (none), ``\"class\"`` or ``\"hybrid\"`` (the product of both).",
    "variant": "Which loss is equalised: ``\"weighted\"`` (the attacker knows the weights) or ``\"unweighted\"``.",
    "update": "How weights follow from one iteration to the next: ``\"published\"`` or ``\"accelerated\"``.",
    "min_weight": "Smallest weight of a record, zero or more; weights are clamped after their mean was set to 1.",
    "max_weight": "Largest weight of a record.",
    "iterations": "Reweightings at most, 1 or more.",
    "tolerance": "Stop when the standard deviation of η is at most this share of its mean.",
    # attack
    "candidates": "Number of values that the secret can take, all equally likely, at least 2.",
    "bins": "Bins of a numeric secret with more values than that, 2 to 100.",
    "sigmas": "Noise scales to try, above 0. By default sixteen around what the secret leaks.",
    "trials": "Noise vectors for every scale.",
    "attacks": "Attackers to play: ``\"white-box\"``, ``\"white-box-prior\"``, ``\"black-box\"``, ``\"informed\"``.",
    "balance": "Balance leakage first, in this many iterations; 0 for none.",
    # release
    "budget_eta": "Refuse if the largest η of all releases of these data together would be above this.",
    "data_changed": "The data grew or lost rows since the releases in the ledger: why. It goes on record, and what was released "
                    "before still counts.",
    "ledger_key": "File of the key that seals the ledger, made where it is not there. By default ``ledger.key`` in ``private/``.",
    # accounting
    "delta": "δ, at which ε is stated: above 0, below 1.",
    "rate": "Probability of each record to take part in a step (Poisson sampling), above 0, at most 1.",
    "steps": "Number of steps.",
    "laplace": "Scale of the Laplace mechanism over the ℓ₁ sensitivity.",
    "randomised_response": "Number of categories of randomised response, at least 2.",
    "noise": "Probability of a uniform draw in randomised response, above 0, at most 1.",
    "step": "Several kinds of release that follow one another, each a mapping with ``sigma`` (and ``rate``), ``laplace``, or "
            "``randomised_response`` and ``noise``, and with ``steps``.",
    "adjacency": "Which neighbours are told apart: ``\"add-remove\"`` (a record is there or is not) or ``\"replace\"`` (it takes "
                 "another value).",
    "prior": "Probabilities of the values of the secret instead, summing to 1.",
    "mechanism": "What the attacker sees: ``\"gaussian\"`` (the encoding of the secret plus noise), ``\"randomised-response\"``, "
                 "``\"dp-sgd\"``, ``\"laplace\"``, ``\"composition\"`` (see ``step``) or ``\"renyi\"`` (see ``alpha``, ``epsilon``).",
    "encoding": "What the secret becomes before Gaussian noise: ``\"one-hot\"``, ``\"line\"`` (evenly from 0 to 1), or a CSV or "
                "JSON file with one vector a value.",
    "alpha": "Order of a stated Rényi divergence, at least 1.",
    "epsilon": "The largest Rényi divergence of order ``alpha`` that is stated, at least 0.",
    "curve": "Draw a curve: ``\"epsilon\"`` (advantage against ε) or ``\"noise\"`` (every bound against the noise).",
    "at": "Values of the curve's horizontal axis. By default those of the paper's figures.",
    "noise_vectors": "Noise vectors for every scale of the attacks.",
    "eta": "η.",
    "advantage": "Target: membership advantage, true- less false-positive rate, between 0 and 1.",
    "tpr": "Target: true-positive rate of a membership test, at ``fpr``.",
    "fpr": "The false-positive rate of ``tpr``.",
    "success": "Target: probability of guessing a secret of ``candidates`` or ``prior``, or the column ``secret`` of the table.",
    "over": "Whether ``success`` is for ``\"every-record\"`` or in the ``\"mean\"`` over them.",
    # clusters
    "records": "Folder for the table of records that all machines see, a Parquet file a part. Without it none is written.",
    "scores": "The same for the points of ``score``.",
    "retries": "How often a task that fails is tried again, beside those that are lost with their worker; 0 or more.",
    "resume": "Folder for the answers of passes that are finished: whoever starts again with the same files, options and folder computes "
              "none of them again. It is as sensitive as the data, and may go when the result is there.",
    # networks
    "clip": "Clip the gradient of every record at this norm C, above 0.",
    "clip_kind": "``\"hard\"`` (at most C), ``\"gelu\"`` (smoothly, at most 1.12 C) or ``\"none\"``. By default hard, with "
                 "``clip``.",
    "device": "Where it computes: ``\"cpu\"``, ``\"cuda\"``, ``\"cuda:1\"`` (the number of a GPU) or ``\"auto\"``.",
    "precision": "Numbers to compute with: ``\"f32\"`` (single), ``\"f64\"`` (double: twice the memory and time) or, on a GPU, "
                 "``\"tf32\"``.",
}


def documented(**own: str) -> Callable[[_F], _F]:
    """Writes the section of parameters into a docstring; ``own`` are the words of this function alone."""

    def decorate(function: _F) -> _F:
        lines = ["Parameters", "----------"]
        for name, parameter in inspect.signature(function).parameters.items():
            if name in ("self", "cls"):
                continue
            kind = parameter.annotation if isinstance(parameter.annotation, str) else "object"
            lines.append(f"{name} : {'object' if kind == 'Any' else kind}{_default(parameter)}")
            lines.extend("    " + line for line in textwrap.wrap(own.get(name) or PARAMETERS[name], 110))
        text = inspect.cleandoc(function.__doc__ or "")
        section = "\n".join(lines)
        heading = re.search(r"^(Returns|Examples)\n---", text, re.M)
        before, after = (text[: heading.start()], text[heading.start() :]) if heading else (text, "")
        function.__doc__ = f"{before.rstrip()}\n\n{section}\n\n{after}"
        return function

    return decorate


def _default(parameter: inspect.Parameter) -> str:
    default = parameter.default
    if default is parameter.empty or default is None:
        return ""
    return f", default {default.__name__ if callable(default) else repr(default)}"
