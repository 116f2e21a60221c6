"""Keywords to requests: plain mappings with the fields of the library's requests, which check them."""

from __future__ import annotations

import inspect
import json
import math
import numbers
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from . import _native
from ._native import DataError, OptionError
from ._tables import Data, is_estimator, is_files, is_frame, level, read

Progress = bool | Callable[[str, int, int], Any] | None
Path = str | os.PathLike[str]

#: keywords about a table and its model, of functions where a table is optional
OF_A_TABLE = (
    "y", "target", "id", "drop", "categorical", "weights", "group", "columns", "delimiter", "na", "one_hot", "scale", "pca",
    "missing", "positive", "schema", "bounds", "levels", "clip_to_bounds", "min_level_count", "decimal", "text_encoding", "header",
    "model", "power", "huber_threshold", "max_classes", "l2", "fit_intercept", "test", "holdout", "label",
)


def listed(value: Any) -> list[Any]:
    """A list of one or several values; empty for none."""
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple, set, frozenset)) or hasattr(value, "tolist") else [value]


def pairs(name: str, value: Any) -> list[tuple[str, Any]]:
    """A mapping as pairs."""
    if value is None:
        return []
    if not isinstance(value, Mapping):
        raise OptionError(f"{name}={value!r}: expected a mapping of attributes to values, such as {{'age': 5}}")
    return [(str(key), item) for key, item in value.items()]


def pair(name: str, value: Any) -> tuple[str, Any] | None:
    """A mapping of one attribute to a value."""
    result = pairs(name, value)
    if len(result) > 1:
        raise OptionError(f"{name}={value!r}: expected one attribute")
    return result[0] if result else None


def secret(label: Any) -> bool:
    """Whether the label is part of the secret."""
    if label not in ("secret", "public"):
        raise OptionError(f"label={label!r}: expected 'secret' or 'public'")
    return bool(label == "secret")


def settings(function: Callable[..., Any], options: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """Those of some keywords that are not at their defaults."""
    parameters = inspect.signature(function).parameters

    def is_default(name: str) -> bool:
        value, default = options[name], parameters[name].default
        if default is None or isinstance(default, bool):
            return value is default
        if isinstance(default, tuple):
            return value is None or not listed(value)
        return isinstance(value, (str, int, float)) and bool(value == default)

    return [name for name in names if name in options and not is_default(name)]


def opened(data: Any, y: Any, options: Mapping[str, Any], need_target: bool = True) -> Data:
    """The table of a call; ``asked`` are its keywords."""
    if is_estimator(data):
        raise OptionError("data: a fitted estimator, and this fits a model of its own: give the data alone (leakscope.audit takes "
                          "estimators)")
    drop = [str(d) for d in listed(options["drop"])]
    return read(data, y, target=options["target"], group=options["group"], id=options["id"], weights=options["weights"],
                columns=options["columns"], drop=drop, need_target=need_target)


def other(rows: Any, source: Data, columns: Sequence[str] | None, name: str, need_target: bool) -> Data | None:
    """A second table of the same layout: files, a frame, an array, or a pair with its target."""
    if rows is None:
        return None
    is_pair = isinstance(rows, tuple) and len(rows) == 2 and not isinstance(rows[0], (str, os.PathLike))
    x, y = rows if is_pair else (rows, None)
    if need_target and y is None and not _has_target(x, source):
        raise DataError(f"{name}: give a pair of rows and targets, or a table that holds `{source.target}`")
    return read(x, y, columns=columns, name=name, like=source)


def native(rows: Data | None) -> _native.Table | None:
    """A table in memory as the native side takes it; none for files."""
    return None if rows is None else rows.table


def _has_target(x: Any, source: Data) -> bool:
    names = getattr(x, "column_names", getattr(x, "columns", []))
    return is_files(x) or (is_frame(x) and source.target in [str(c) for c in names])


def reading(files: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """How files are read."""
    delimiter = options.get("delimiter")
    if delimiter is not None and not isinstance(delimiter, str):
        raise OptionError(f"delimiter={delimiter!r}: expected one character, or 'tab'")
    return {
        "paths": list(files),
        "delimiter": None if delimiter is None else _native.delimiter(delimiter),
        "na": listed(options.get("na")),
        "encoding": options["text_encoding"] if "text_encoding" in options else options["encoding"],
        "decimal": _decimal(options["decimal"]),
        "no_header": _no_header(options["header"]),
    }


def _decimal(text: Any) -> str:
    if text not in (".", ","):
        raise OptionError(f"decimal={text!r}: expected '.' or ','")
    return "comma" if text == "," else "point"


def _no_header(header: Any) -> bool:
    if not isinstance(header, bool):
        raise OptionError(f"header={header!r}: expected True or False")
    return not header


def public(options: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of the columns without looking at the data."""
    schema, levels = options["schema"], options["levels"]
    if schema is not None and not isinstance(schema, Mapping):
        schema = json.loads(_native.schema(schema))
    if levels is not None and not isinstance(levels, Mapping):
        try:
            with open(levels, encoding="utf-8") as file:
                levels = json.load(file)
        except (OSError, TypeError, ValueError) as e:
            raise OptionError(f"levels={str(levels)!r}: {e}: expected a mapping of columns to levels, or a JSON file of one") from e
    return {
        "schema": None if schema is None else dict(schema),
        "bounds": ranges(options["bounds"]),
        "levels": [(name, [level(v) for v in listed(values)]) for name, values in pairs("levels", levels)],
        "clip_to_bounds": options["clip_to_bounds"],
        "scales": list(options.get("scales", ())),
    }


def ranges(bounds: Any, column: Callable[[Any], str] = str) -> list[tuple[str, Any]]:
    """Ranges of columns, by the names that ``column`` gives them."""
    if bounds is not None and not isinstance(bounds, Mapping):
        raise OptionError(f"bounds={bounds!r}: expected a mapping of columns to ranges, such as {{'age': (0, 100)}}")
    return [(column(name), _range(name, value)) for name, value in (bounds or {}).items()]


def _range(name: Any, value: Any) -> Any:
    """A range as two numbers; dates and texts are read as the library reads them."""
    if isinstance(value, str):
        return _native.bounds(value)
    edges = listed(value)
    if any(isinstance(edge, str) or hasattr(edge, "isoformat") for edge in edges):
        return _native.bounds("..".join(edge if isinstance(edge, str) else edge.isoformat() for edge in edges))
    if len(edges) == 2 and all(isinstance(edge, numbers.Real) for edge in edges) and not -math.inf < edges[0] < edges[1] < math.inf:
        raise OptionError(f"bounds={ {name: value}!r}: expected two finite numbers, the smaller one first")
    return edges


def table(source: Data, options: Mapping[str, Any], test: Data | None = None) -> dict[str, Any]:
    """The request of a table and its model."""
    return {
        "read": reading(source.files, options),
        "roles": {
            "target": source.target or "",
            "id": source.id,
            "group": source.group,
            "weights": source.weights,
            "drop": [*map(str, listed(options["drop"])), *source.drop],
            "categorical": listed(options["categorical"]),
        },
        "one_hot": options["one_hot"],
        "scale": options["scale"],
        "pca": options["pca"],
        "missing": options["missing"],
        "positive": None if options["positive"] is None else level(options["positive"]),
        "public": public(options),
        "min_level_count": options["min_level_count"],
        "family": _family(options),
        **({"max_classes": options["max_classes"]} if "max_classes" in options else {}),
        "l2": options["l2"],
        "intercept": options["fit_intercept"],
        "intercept_share": options.get("intercept_share", 0.0),
        "read_off_elsewhere": options.get("read_off_elsewhere", False),
        "label_secret": secret(options["label"]),
        "test": reading(test.files, options) if test is not None and test.files else None,
        "holdout": options.get("holdout"),
        "seed": options.get("seed"),
        "redact": options.get("redact", False),
    }


def _family(options: Mapping[str, Any]) -> Any:
    """The model as it is written: with its power or its threshold, where it has one."""
    model, number = options["model"], None
    for name, owner in (("power", "tweedie"), ("huber_threshold", "huber")):
        value = options.get(name)
        if value is None:
            continue
        if model != owner:
            raise OptionError(f"{name}={value!r}: it belongs to model={owner!r}, and the model is {model!r}")
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise OptionError(f"{name}={value!r}: expected a number")
        number = float(value)
        if name == "power" and not 1 <= number <= 2:
            raise OptionError(f"power={value!r}: expected a number from 1 to 2 (0 is model='linear'; above 2 the loss is not convex)")
        if name == "huber_threshold" and not (number > 0 and math.isfinite(number)):
            raise OptionError(f"huber_threshold={value!r}: expected a positive number, in the unit of the target")
    return model if number is None else f"{model}({number!r})"


def _noise_names(options: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """The one of several ways to say how much noise; none, where nothing is said."""
    present = [name for name in names if options[name] is not None]
    if len(present) > 1:
        raise OptionError(f"{present[1]}: {present[0]} says how much noise already: give one of the two")
    if options["statistic"] != "max" and present != ["target_eta"]:
        raise OptionError(f"statistic={options['statistic']!r}: it belongs to target_eta, which is not given")
    return present[0] if present else None


def noise(options: Mapping[str, Any], shape_from: Data | None = None) -> Any:
    """The noise of an audit."""
    if is_shaped(options):
        return {"shaped": shaped(options, shape_from)}
    match _noise_names(options, ("sigma", "target_eta", "target_sd")):
        case "sigma":
            return {"given": options["sigma"]}
        case "target_eta":
            return {"target-eta": {"eta": options["target_eta"], "statistic": options["statistic"]}}
        case "target_sd":
            result = pair("target_sd", options["target_sd"])
            if result is None:
                raise OptionError("target_sd={}: expected an attribute and a value, such as {'age': 5}")
            return {"target-sd": {"attribute": result[0], "sd": result[1]}}
        case _:
            return "default"


def is_shaped(options: Mapping[str, Any]) -> bool:
    """Whether the noise has a shape, protects attributes or has several targets."""
    targets = (options["target_eta"] is not None) + len(pairs("target_sd", options["target_sd"]))
    return options["noise_shape"] != "isotropic" or bool(listed(options["protect"])) or targets > 1 or options["shape_from"] is not None


def shaped(options: Mapping[str, Any], shape_from: Data | None) -> dict[str, Any]:
    """The options of noise that is made for its targets; a table in memory goes to the native side by itself."""
    if options["sigma"] is not None:
        raise OptionError("sigma: noise with a shape has no σ: say what it must achieve with target_eta or target_sd, or take "
                          "noise_shape='isotropic'")
    if options["statistic"] != "max":
        raise OptionError(f"statistic={options['statistic']!r}: a target of noise with a shape is for every record: leave it out")
    return {
        "shape": options["noise_shape"],
        "protect": listed(options["protect"]),
        "target_eta": options["target_eta"],
        "target_sd": pairs("target_sd", options["target_sd"]),
        "shape_budget": options["shape_budget"],
        "shape_from": None if shape_from is None else reading(shape_from.files, options),
        "gap": options["gap"],
    }


def of_targets(options: Mapping[str, Any], source: Data | None) -> Any:
    """Noise that is made for targets, where any are said: for functions that look at many scales."""
    targets = options["target_eta"] is not None or bool(pairs("target_sd", options["target_sd"]))
    if not (targets or is_shaped(options)):
        return None
    return {"shaped": shaped({**options, "sigma": None, "statistic": "max"}, public_shape(options, source))}


def public_shape(options: Mapping[str, Any], source: Data | None) -> Data | None:
    """The public table of a shape, in files."""
    if options["shape_from"] is None or source is None:
        return None
    result = other(options["shape_from"], source, options["columns"], "shape_from", True)
    if result is not None and not result.files:
        raise OptionError("shape_from: expected names of files here")
    return result


def amount(options: Mapping[str, Any], source: Data | None = None) -> dict[str, Any]:
    """The noise of a release, which must be said."""
    if "noise_shape" in options and (is_shaped(options) or options["target_sd"]):
        return {"shaped": shaped(options, public_shape(options, source))}
    match _noise_names(options, ("sigma", "target_eta")):
        case "sigma":
            return {"sigma": options["sigma"]}
        case "target_eta":
            return {"target-eta": [options["target_eta"], options["statistic"]]}
        case _:
            raise OptionError("sigma: how much noise? give sigma or target_eta")


def steps(values: Any) -> list[dict[str, Any]]:
    """Kinds of release."""
    result = [values] if isinstance(values, Mapping) else listed(values)
    for one in result:
        if not isinstance(one, Mapping):
            raise OptionError(f"step={one!r}: expected a mapping, such as dict(sigma=1, rate=0.01, steps=1000)")
    return [dict(one) for one in result]


#: keywords of every training run, of a network or of a language model
_RUN = ("epochs", "steps", "rate", "lr", "momentum", "adam", "epsilon", "delta", "weight_decay", "probes", "filter_epsilon",
        "checkpoint_every", "resume", "seed", "not_private_noise_from_seed", "redact", "precision", "device")


def release(options: Mapping[str, Any]) -> dict[str, Any]:
    """Clip and noise of a gradient step."""
    return {name: options[name] for name in ("clip", "clip_kind", "sigma")}


def run(options: Mapping[str, Any]) -> dict[str, Any]:
    """How a training run goes."""
    if options["adam"] and options["momentum"] != 0.9:
        raise OptionError("momentum: it belongs to SGD: leave it out, or adam")
    track = options["track"]
    return {
        **{name: options[name] for name in _RUN if name in options},
        "release": release(options),
        "track": ("panel" if track else None) if isinstance(track, bool) else track,
    }
