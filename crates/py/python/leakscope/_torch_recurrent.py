"""Recurrent layers step by step: torch's own kernels for GPUs have no derivatives forwards, plain sums and products have."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn.modules import rnn

_State = tuple[torch.Tensor, ...]
_Step = Callable[[torch.Tensor, _State, Any, bool], _State]


def _sums(x: torch.Tensor, h: torch.Tensor, w: Any, bias: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """What a step sums up of its input, and of the state before."""
    linear = torch.nn.functional.linear
    return linear(x, w[0], w[2] if bias else None), linear(h, w[1], w[3] if bias else None)


def _lstm(x: torch.Tensor, state: _State, w: Any, bias: bool) -> _State:
    h, c = state
    i, f, g, o = sum(_sums(x, h, w, bias)).chunk(4, dim=-1)  # type: ignore[union-attr]
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(c)
    # a projection of the state comes last
    return (torch.nn.functional.linear(h, w[-1]) if len(w) == (5 if bias else 3) else h), c


def _gru(x: torch.Tensor, state: _State, w: Any, bias: bool) -> _State:
    (a, b, c), (p, q, r) = (part.chunk(3, dim=-1) for part in _sums(x, state[0], w, bias))
    z = torch.sigmoid(b + q)
    return ((1 - z) * torch.tanh(c + torch.sigmoid(a + p) * r) + z * state[0],)


def _plain(act: Callable[[torch.Tensor], torch.Tensor]) -> _Step:
    def step(x: torch.Tensor, state: _State, w: Any, bias: bool) -> _State:
        return (act(sum(_sums(x, state[0], w, bias))),)  # type: ignore[arg-type]

    return step


def _run(step: _Step, original: Any) -> Any:
    """A layer of torch's signature; what is packed goes to torch's own."""
    def run(x: Any, states: Any, weights: Any, bias: Any, layers: Any, dropout: Any, training: Any, both: Any, first: Any = None) -> Any:
        if first is None or not isinstance(bias, bool):
            return original(x, states, weights, bias, layers, dropout, training, both, *(() if first is None else (first,)))
        states = (states,) if isinstance(states, torch.Tensor) else tuple(states)
        x = x.transpose(0, 1) if first else x
        ways = 2 if both else 1
        width, ends = len(weights) // (layers * ways), []
        for layer in range(layers):
            outputs = []
            for way in range(ways):
                at = layer * ways + way
                w, state, seen = weights[at * width : (at + 1) * width], tuple(s[at] for s in states), []
                for t in range(x.shape[0])[:: -1 if way else 1]:
                    state = step(x[t], state, w, bias)
                    seen.append(state[0])
                ends.append(state)
                outputs.append(torch.stack(seen[::-1] if way else seen))
            x = torch.cat(outputs, dim=-1)
        return (x.transpose(0, 1) if first else x, *(torch.stack(parts) for parts in zip(*ends)))

    return run


class _Composed:
    """Torch's functions of recurrent layers, those of known kinds step by step."""

    def __init__(self, original: Any) -> None:
        self._original = original
        for name, step in (("lstm", _lstm), ("gru", _gru), ("rnn_tanh", _plain(torch.tanh)), ("rnn_relu", _plain(torch.relu))):
            setattr(self, name, _run(step, getattr(original, name)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


@contextlib.contextmanager
def step_by_step() -> Iterator[None]:
    """Recurrent layers out of plain operations, with the values of torch's own."""
    before = rnn._VF
    try:
        setattr(rnn, "_VF", _Composed(before))
        yield
    finally:
        setattr(rnn, "_VF", before)
