"""``result.plot``: what a document holds, drawn by matplotlib where that is installed. Every function returns the axes it drew on,
and takes ``ax=`` to draw on others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ._card import _histogram
from ._native import LeakscopeError, OptionError

if TYPE_CHECKING:
    from ._results import Result

#: colours that differ for everybody (Okabe, Ito 2008)
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
#: attributes and groups that a chart shows
_SHOWN = 25


class Plots:
    """Charts of one result; ``dir(result.plot)`` lists those that it has numbers for.

    >>> import numpy as np, leakscope
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> [name for name in dir(leakscope.audit(X, X @ [1.0, 2.0], l2=0.1, sigma=1.0).plot)]
    ['attributes', 'histogram']
    """

    def __init__(self, result: Result) -> None:
        self._result = result

    def __dir__(self) -> list[str]:
        return sorted(name for name, has in _HAS.items() if has(self._result))

    def __repr__(self) -> str:
        return f"<charts: {', '.join(dir(self)) or 'none'}>"

    def histogram(self, ax: Any = None, bins: int | None = None) -> Any:
        """How leakage is spread over records: η of tables, dFIL (or η) of networks."""
        histogram = self._needs("histogram", _histogram)
        edges, counts, name, logarithmic = histogram
        ax = _axes(ax)
        by = 1 if bins is None else max(1, -(-len(counts) // bins))
        edges, counts = np.append(edges[:-1:by], edges[-1]), [sum(counts[i: i + by]) for i in range(0, len(counts), by)]
        ax.stairs(counts, edges, fill=True, color=_COLOURS[0])
        if logarithmic:
            ax.set_xscale("log")
        return _named(ax, name, "records")

    def attributes(self, ax: Any = None, most: int = _SHOWN) -> Any:
        """The attributes that leak most: largest η over records, and its mean as a dot."""
        rows = self._needs("attributes", _attributes)
        rows = sorted(rows, key=lambda a: -a["eta_max"])[:most][::-1]
        ax = _axes(ax)
        places = range(len(rows))
        ax.barh(places, [a["eta_max"] for a in rows], color=_COLOURS[0], label="largest")
        ax.plot([a["eta_mean"] for a in rows], places, "o", color=_COLOURS[1], label="mean")
        ax.set_yticks(places, [a["name"] for a in rows])
        ax.legend()
        return _named(ax, "information loss η of the attribute", "")

    def groups(self, ax: Any = None, most: int = _SHOWN) -> Any:
        """Mean η of every group (of every class of a softmax model without groups), with the largest as a dot."""
        rows = self._needs("groups", _groups)
        rows = sorted(rows, key=lambda g: -g["eta_mean"])[:most][::-1]
        ax = _axes(ax)
        places = range(len(rows))
        ax.barh(places, [g["eta_mean"] for g in rows], color=_COLOURS[0], label="mean")
        ax.plot([g["eta_max"] for g in rows], places, "o", color=_COLOURS[1], label="largest")
        ax.set_yticks(places, [f"{g['name']} ({g['n']})" for g in rows])
        ax.legend()
        return _named(ax, "information loss η of a record", "")

    def utility(self, ax: Any = None) -> Any:
        """What noise costs: the expected score against σ, with the score without noise and that of a model without columns."""
        result = self._needs("utility", _utility)
        # points of an attack are pairs
        points = [(p["sigma"], p["value"]) if isinstance(p, dict) else tuple(p) for p in result["points"]]
        ax = _axes(ax)
        ax.plot(*zip(*points), color=_COLOURS[0], label="with noise")
        for name, colour in (("without_noise", _COLOURS[2]), ("constant_model", _COLOURS[6])):
            ax.axhline(result[name], color=colour, linestyle="--", label=name.replace("_", " "))
        sigma = self._result.document.get("sigma")
        if isinstance(sigma, float):
            ax.axvline(sigma, color=_COLOURS[1], linestyle=":", label="chosen noise")
        ax.set_xscale("log")
        ax.legend()
        return _named(ax, "standard deviation σ of the noise", result["metric"].replace("-", " "))

    def attacks(self, ax: Any = None) -> Any:
        """Share of records that each attacker guesses right against σ, with 95% intervals, over a guess without the model."""
        rows = self._needs("attacks", _attacks)
        ax = _axes(ax)
        kinds = list(dict.fromkeys((r["attack"], r["balanced"]) for r in rows))
        for i, (attack, balanced) in enumerate(kinds):
            own = sorted((r for r in rows if (r["attack"], r["balanced"]) == (attack, balanced)), key=lambda r: r["sigma"])
            at = [r["accuracy"] for r in own]
            # Rounding may put an end of an interval on the wrong side by a digit.
            low = [max(0.0, r["accuracy"] - r["ci_low"]) for r in own]
            high = [max(0.0, r["ci_high"] - r["accuracy"]) for r in own]
            ax.errorbar([r["sigma"] for r in own], at, yerr=(low, high), color=_COLOURS[i % len(_COLOURS)], marker="o", capsize=2,
                        label=attack.replace("-", " ") + (", balanced" if balanced else ""))
        ax.axhline(self._result.document["baseline"]["accuracy"], color=_COLOURS[6], linestyle="--", label="a guess")
        ax.set_xscale("log")
        ax.legend()
        return _named(ax, "standard deviation σ of the noise", "records guessed right")

    def figure(self, id: str | None = None, ax: Any = None) -> Any:
        """A figure of the page: curves of an account, of bounds, of canaries and of attacks on networks. ``id`` names it where there
        are several."""
        figures = self._needs("figure", _figures)
        names = [f["id"] for f in figures]
        if id is not None and id not in names:
            raise OptionError(f"id={id!r}: this result has {', '.join(map(repr, names))}")
        result = figures[0 if id is None else names.index(id)]
        ax = _axes(ax)
        for i, series in enumerate(result["series"]):
            # y is absent where a curve has no bound
            points = [p for p in series["points"] if p["y"] is not None]
            style = {"bound": "-", "measured": "--", "observed": ":"}[series["claim"]]
            colour = _COLOURS[i % len(_COLOURS)]
            ax.plot([p["x"] for p in points], [p["y"] for p in points], style, color=colour, label=series["name"],
                    marker="o" if series["claim"] == "observed" else None)
            spread = [p for p in points if p.get("interval")]
            if spread:
                ax.vlines([p["x"] for p in spread], *zip(*(p["interval"] for p in spread)), color=colour)
        for level in result.get("levels", []):
            ax.axhline(level["value"], color=_COLOURS[6], linestyle="--", label=level["name"])
        if result.get("chosen") is not None:
            ax.axvline(result["chosen"], color=_COLOURS[6], linestyle=":")
        ax.set_xscale("log" if result["x"]["log"] else "linear")
        ax.set_yscale("log" if result["y"]["log"] else "linear")
        ax.legend()
        ax.set_title(result["title"])
        return _named(ax, result["x"]["title"], result["y"]["title"])

    def dfil(self, ax: Any = None) -> Any:
        """dFIL that records have given away over a training run: the median of those followed, and what nine in ten lie below."""
        history = self._needs("dfil", _dfil)
        ax = _axes(ax)
        for field, name, colour in (("dfil_median", "median", _COLOURS[0]), ("dfil_p90", "nine in ten lie below", _COLOURS[1])):
            points = [(p["step"], p[field]) for p in history if p.get(field) is not None]
            if points:
                ax.plot(*zip(*points), color=colour, label=name)
        ax.legend()
        return _named(ax, "steps", "dFIL of a record")

    def losses(self, ax: Any = None) -> Any:
        """The loss over a training run."""
        history = self._needs("losses", _losses)
        ax = _axes(ax)
        for field, name, colour in (("loss", "drawn records", _COLOURS[0]), ("watched_loss", "watched records", _COLOURS[1])):
            points = [(p["step"], p[field]) for p in history if p.get(field) is not None]
            if points:
                ax.plot(*zip(*points), color=colour, label=name)
        ax.legend()
        return _named(ax, "steps", "mean loss")

    def plis(self, record: int = 0, ax: Any = None) -> Any:
        """PLIS of every value of one measured record (counted from 0 among those measured): a map of a picture, bars of a row."""
        maps = self._needs("plis", _plis)
        if not 0 <= record < len(maps):
            raise OptionError(f"record={record}: {len(maps)} records were measured, counted from 0")
        values = np.squeeze(maps[record])
        ax = _axes(ax)
        if values.ndim == 3:  # channels add up, first or last
            values = np.abs(values).sum(axis=0 if self._result._channels_first else -1)  # type: ignore[attr-defined]
        if values.ndim == 2:
            drawn = ax.imshow(np.abs(values), cmap="magma")
            ax.figure.colorbar(drawn, ax=ax, label="PLIS")
            ax.set_xticks([])
            ax.set_yticks([])
            return ax
        ax.bar(range(values.size), np.atleast_1d(values), color=_COLOURS[0])
        return _named(ax, "value of the record", "PLIS")

    def _needs(self, name: str, of: Callable[[Any], Any]) -> Any:
        """What a chart draws, of a result that has it."""
        if not _HAS[name](self._result):
            raise LeakscopeError(f"this {type(self._result).__name__} has nothing for plot.{name}(): it has "
                                 f"{', '.join(f'plot.{n}()' for n in dir(self)) or 'no charts'}")
        return of(self._result if of is _plis else self._result.document)


def _attributes(d: dict[str, Any]) -> Any:
    return d.get("attributes")


def _groups(d: dict[str, Any]) -> Any:
    return d.get("groups") or d.get("classes")


def _utility(d: dict[str, Any]) -> Any:
    result = d.get("utility") or (d.get("data") or {}).get("utility")
    return result if result and result.get("points") else None


def _attacks(d: dict[str, Any]) -> Any:
    return [*d.get("results", []), *d.get("results_balanced", [])] if "results_balanced" in d else None


def _figures(d: dict[str, Any]) -> Any:
    return d.get("figures")


def _of_history(field: str) -> Callable[[dict[str, Any]], Any]:
    def of(d: dict[str, Any]) -> Any:
        history = d.get("history") or []
        return history if any(p.get(field) is not None for p in history) else None

    return of


_dfil, _losses = _of_history("dfil_median"), _of_history("loss")


def _plis(result: Any) -> Any:
    return getattr(result, "plis_maps", None)


def _of_document(of: Callable[[Any], Any]) -> Callable[[Any], bool]:
    return lambda result: bool(of(result.document))


#: which charts a result has numbers for
_HAS: dict[str, Callable[[Any], bool]] = {
    "histogram": _of_document(_histogram),
    "attributes": _of_document(_attributes),
    "groups": _of_document(_groups),
    "utility": _of_document(_utility),
    "attacks": _of_document(_attacks),
    "figure": _of_document(_figures),
    "dfil": _of_document(_dfil),
    "losses": _of_document(_losses),
    "plis": lambda result: _plis(result) is not None,
}


def _axes(ax: Any) -> Any:
    """The axes to draw on: those given, or new ones."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as missing:
        raise ImportError("result.plot draws with matplotlib, which is not installed: pip install matplotlib. Without it, "
                          "result.report(path) writes the page with the same charts") from missing
    return plt.subplots()[1] if ax is None else ax


def _named(ax: Any, x: str, y: str) -> Any:
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    return ax
