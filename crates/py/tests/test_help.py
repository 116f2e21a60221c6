"""``help()`` suffices: every parameter of every public function is explained, with its type, and its default where it has one."""

import inspect
import re

import pytest

import leakscope
import leakscope.dask
import leakscope.distributed
import leakscope.spark
import leakscope.text

#: classes that a caller makes; results come from functions
MADE = [leakscope.Accountant, leakscope.Network, leakscope.PrivateLinear, leakscope.PrivateLogistic]


def public(owner):
    for name in getattr(owner, "__all__", None) or [n for n in vars(owner) if not n.startswith("_")]:
        one = inspect.getattr_static(owner, name) if inspect.isclass(owner) else getattr(owner, name)
        if isinstance(one, classmethod):
            one = one.__func__
        # a property and a constant have nothing to be told
        if inspect.isfunction(one):
            yield f"{owner.__name__}.{name}", one


MODULES = [leakscope, leakscope.text, leakscope.distributed, leakscope.dask, leakscope.spark]


def classes():
    return {one for m in MODULES for n in m.__all__ if inspect.isclass(one := getattr(m, n)) and one.__module__.startswith("leakscope")}


EVERY = [pair for m in MODULES for pair in public(m)]
EVERY += [pair for c in sorted(classes(), key=lambda c: c.__name__) for pair in public(c)]
EVERY += [(c.__name__, c) for c in MADE]


@pytest.mark.parametrize("name, one", EVERY, ids=[name for name, _ in EVERY])
def test_every_parameter_has_its_type_and_default(name, one):
    text = inspect.getdoc(one)
    assert text, f"{name} has no docstring"
    for parameter in inspect.signature(one).parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        line = re.search(rf"^\*{{0,2}}{parameter.name} : (.+)$", text, re.M)
        assert line, f"{name}: no type of `{parameter.name}`"
        default = parameter.default
        if default not in (parameter.empty, None):
            assert line[1].endswith(f"default {default.__name__ if callable(default) else repr(default)}"), f"{name}: {line[0]}"


def test_there_is_something_to_read():
    assert len(EVERY) > 40 and any(name.endswith("PrivateLogistic") for name, _ in EVERY)
