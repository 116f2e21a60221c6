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
    found = pairs(name, value)
    if len(found) > 1:
        raise OptionError(f"{name}={value!r}: expected one attribute")
    return found[0] if found else None


def secret(label: Any) -> bool:
    """Whether the label is part of the secret."""
    if label not in ("secret", "public"):
        raise OptionError(f"label={label!r}: expected 'secret' or 'public'")
    return bool(label == "secret")


def said(function: Callable[..., Any], asked: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """Those of some keywords that are not at their defaults."""
    parameters = inspect.signature(function).parameters

    def is_default(name: str) -> bool:
        value, default = asked[name], parameters[name].default
        if default is None or isinstance(default, bool):
            return value is default
        if isinstance(default, tuple):
            return value is None or not listed(value)
        return isinstance(value, (str, int, float)) and bool(value == default)

    return [name for name in names if name in asked and not is_default(name)]


def opened(data: Any, y: Any, asked: Mapping[str, Any], need_target: bool = True) -> Data:
    """The table of a call; ``asked`` are its keywords."""
    if is_estimator(data):
        raise OptionError("data: a fitted estimator, and this fits a model of its own: give the data alone (leakscope.audit takes "
                          "estimators)")
    drop = [str(d) for d in listed(asked["drop"])]
    return read(data, y, target=asked["target"], group=asked["group"], id=asked["id"], weights=asked["weights"],
                columns=asked["columns"], drop=drop, need_target=need_target)


def other(rows: Any, given: Data, columns: Sequence[str] | None, name: str, need_target: bool) -> Data | None:
    """A second table of the same layout: files, a frame, an array, or a pair with its target."""
    if rows is None:
        return None
    is_pair = isinstance(rows, tuple) and len(rows) == 2 and not isinstance(rows[0], (str, os.PathLike))
    x, y = rows if is_pair else (rows, None)
    if need_target and y is None and not _has_target(x, given):
        raise DataError(f"{name}: give a pair of rows and targets, or a table that holds `{given.target}`")
    return read(x, y, columns=columns, name=name, like=given)


def native(rows: Data | None) -> _native.Table | None:
    """A table in memory as the native side takes it; none for files."""
    return None if rows is None else rows.table


def _has_target(x: Any, given: Data) -> bool:
    names = getattr(x, "column_names", getattr(x, "columns", []))
    return is_files(x) or (is_frame(x) and given.target in [str(c) for c in names])


def reading(files: Sequence[str], asked: Mapping[str, Any]) -> dict[str, Any]:
    """How files are read."""
    delimiter = asked.get("delimiter")
    if delimiter is not None and not isinstance(delimiter, str):
        raise OptionError(f"delimiter={delimiter!r}: expected one character, or 'tab'")
    return {
        "paths": list(files),
        "delimiter": None if delimiter is None else _native.delimiter(delimiter),
        "na": listed(asked.get("na")),
        "encoding": asked["text_encoding"] if "text_encoding" in asked else asked["encoding"],
        "decimal": _decimal(asked["decimal"]),
        "no_header": _no_header(asked["header"]),
    }


def _decimal(text: Any) -> str:
    if text not in (".", ","):
        raise OptionError(f"decimal={text!r}: expected '.' or ','")
    return "comma" if text == "," else "point"


def _no_header(header: Any) -> bool:
    if not isinstance(header, bool):
        raise OptionError(f"header={header!r}: expected True or False")
    return not header


def public(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of the columns without looking at the data."""
    schema, levels = asked["schema"], asked["levels"]
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
        "bounds": [(name, _range(name, value)) for name, value in pairs("bounds", asked["bounds"])],
        "levels": [(name, [level(v) for v in listed(values)]) for name, values in pairs("levels", levels)],
        "clip_to_bounds": asked["clip_to_bounds"],
        "scales": list(asked.get("scales", ())),
    }


def _range(name: str, value: Any) -> Any:
    """A range as two numbers; dates and texts are read as the library reads them."""
    if isinstance(value, str):
        return _native.bounds(value)
    edges = listed(value)
    if any(isinstance(edge, str) or hasattr(edge, "isoformat") for edge in edges):
        return _native.bounds("..".join(edge if isinstance(edge, str) else edge.isoformat() for edge in edges))
    if len(edges) == 2 and all(isinstance(edge, numbers.Real) for edge in edges) and not -math.inf < edges[0] < edges[1] < math.inf:
        raise OptionError(f"bounds={ {name: value}!r}: expected two finite numbers, the smaller one first")
    return edges


def table(given: Data, asked: Mapping[str, Any], test: Data | None = None) -> dict[str, Any]:
    """The request of a table and its model."""
    return {
        "read": reading(given.files, asked),
        "roles": {
            "target": given.target or "",
            "id": given.id,
            "group": given.group,
            "weights": given.weights,
            "drop": [*map(str, listed(asked["drop"])), *given.drop],
            "categorical": listed(asked["categorical"]),
        },
        "one_hot": asked["one_hot"],
        "scale": asked["scale"],
        "pca": asked["pca"],
        "missing": asked["missing"],
        "positive": None if asked["positive"] is None else level(asked["positive"]),
        "public": public(asked),
        "min_level_count": asked["min_level_count"],
        "family": _family(asked),
        **({"max_classes": asked["max_classes"]} if "max_classes" in asked else {}),
        "l2": asked["l2"],
        "intercept": asked["fit_intercept"],
        "intercept_share": asked.get("intercept_share", 0.0),
        "read_off_elsewhere": asked.get("read_off_elsewhere", False),
        "label_secret": secret(asked["label"]),
        "test": reading(test.files, asked) if test is not None and test.files else None,
        "holdout": asked.get("holdout"),
        "seed": asked.get("seed"),
        "redact": asked.get("redact", False),
    }


def _family(asked: Mapping[str, Any]) -> Any:
    """The model as it is written: with its power or its threshold, where it has one."""
    model, given = asked["model"], None
    for name, owner in (("power", "tweedie"), ("huber_threshold", "huber")):
        value = asked.get(name)
        if value is None:
            continue
        if model != owner:
            raise OptionError(f"{name}={value!r}: it belongs to model={owner!r}, and the model is {model!r}")
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise OptionError(f"{name}={value!r}: expected a number")
        given = float(value)
        if name == "power" and not 1 <= given <= 2:
            raise OptionError(f"power={value!r}: expected a number from 1 to 2 (0 is model='linear'; above 2 the loss is not convex)")
        if name == "huber_threshold" and not (given > 0 and math.isfinite(given)):
            raise OptionError(f"huber_threshold={value!r}: expected a positive number, in the unit of the target")
    return model if given is None else f"{model}({given!r})"


def _noise_names(asked: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """The one of several ways to say how much noise; none, where nothing is said."""
    given = [name for name in names if asked[name] is not None]
    if len(given) > 1:
        raise OptionError(f"{given[1]}: {given[0]} says how much noise already: give one of the two")
    if asked["statistic"] != "max" and given != ["target_eta"]:
        raise OptionError(f"statistic={asked['statistic']!r}: it belongs to target_eta, which is not given")
    return given[0] if given else None


def noise(asked: Mapping[str, Any], shape_from: Data | None = None) -> Any:
    """The noise of an audit."""
    if is_shaped(asked):
        return {"shaped": shaped(asked, shape_from)}
    match _noise_names(asked, ("sigma", "target_eta", "target_sd")):
        case "sigma":
            return {"given": asked["sigma"]}
        case "target_eta":
            return {"target-eta": {"eta": asked["target_eta"], "statistic": asked["statistic"]}}
        case "target_sd":
            found = pair("target_sd", asked["target_sd"])
            if found is None:
                raise OptionError("target_sd={}: expected an attribute and a value, such as {'age': 5}")
            return {"target-sd": {"attribute": found[0], "sd": found[1]}}
        case _:
            return "default"


def is_shaped(asked: Mapping[str, Any]) -> bool:
    """Whether the noise has a shape, protects attributes or has several targets."""
    targets = (asked["target_eta"] is not None) + len(pairs("target_sd", asked["target_sd"]))
    return asked["noise_shape"] != "isotropic" or bool(listed(asked["protect"])) or targets > 1 or asked["shape_from"] is not None


def shaped(asked: Mapping[str, Any], shape_from: Data | None) -> dict[str, Any]:
    """The options of noise that is made for its targets; a table in memory goes to the native side by itself."""
    if asked["sigma"] is not None:
        raise OptionError("sigma: noise with a shape has no σ: say what it must achieve with target_eta or target_sd, or take "
                          "noise_shape='isotropic'")
    if asked["statistic"] != "max":
        raise OptionError(f"statistic={asked['statistic']!r}: a target of noise with a shape is for every record: leave it out")
    return {
        "shape": asked["noise_shape"],
        "protect": listed(asked["protect"]),
        "target_eta": asked["target_eta"],
        "target_sd": pairs("target_sd", asked["target_sd"]),
        "shape_budget": asked["shape_budget"],
        "shape_from": None if shape_from is None else reading(shape_from.files, asked),
        "gap": asked["gap"],
    }


def of_targets(asked: Mapping[str, Any], given: Data | None) -> Any:
    """Noise that is made for targets, where any are said: for functions that look at many scales."""
    targets = asked["target_eta"] is not None or bool(pairs("target_sd", asked["target_sd"]))
    if not (targets or is_shaped(asked)):
        return None
    return {"shaped": shaped({**asked, "sigma": None, "statistic": "max"}, public_shape(asked, given))}


def public_shape(asked: Mapping[str, Any], given: Data | None) -> Data | None:
    """The public table of a shape, in files."""
    if asked["shape_from"] is None or given is None:
        return None
    found = other(asked["shape_from"], given, asked["columns"], "shape_from", True)
    if found is not None and not found.files:
        raise OptionError("shape_from: expected names of files here")
    return found


def amount(asked: Mapping[str, Any], given: Data | None = None) -> dict[str, Any]:
    """The noise of a release, which must be said."""
    if "noise_shape" in asked and (is_shaped(asked) or asked["target_sd"]):
        return {"shaped": shaped(asked, public_shape(asked, given))}
    match _noise_names(asked, ("sigma", "target_eta")):
        case "sigma":
            return {"sigma": asked["sigma"]}
        case "target_eta":
            return {"target-eta": [asked["target_eta"], asked["statistic"]]}
        case _:
            raise OptionError("sigma: how much noise? give sigma or target_eta")


def steps(values: Any) -> list[dict[str, Any]]:
    """Kinds of release."""
    found = [values] if isinstance(values, Mapping) else listed(values)
    for one in found:
        if not isinstance(one, Mapping):
            raise OptionError(f"step={one!r}: expected a mapping, such as dict(sigma=1, rate=0.01, steps=1000)")
    return [dict(one) for one in found]
