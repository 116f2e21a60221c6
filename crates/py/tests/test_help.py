"""``help()`` suffices: every parameter of every public function is explained, with its default where it has one."""

import inspect
import re

import pytest

import leakscope
import leakscope.distributed
import leakscope.text

#: classes that a caller makes; results come from functions
MADE = [leakscope.Accountant, leakscope.Network, leakscope.PrivateLinear, leakscope.PrivateLogistic]


def public(owner):
    for name in getattr(owner, "__all__", None) or [n for n in vars(owner) if not n.startswith("_")]:
        one = inspect.getattr_static(owner, name) if inspect.isclass(owner) else getattr(owner, name)
        # a property, a class method and a constant have nothing to be told
        if inspect.isfunction(one):
            yield f"{owner.__name__}.{name}", one


def classes():
    modules = [leakscope, leakscope.text, leakscope.distributed]
    return {one for m in modules for n in m.__all__ if inspect.isclass(one := getattr(m, n)) and one.__module__.startswith("leakscope")}


EVERY = [pair for m in (leakscope, leakscope.text, leakscope.distributed) for pair in public(m)]
EVERY += [pair for c in sorted(classes(), key=lambda c: c.__name__) for pair in public(c)]
EVERY += [(c.__name__, c) for c in MADE]


@pytest.mark.parametrize("name, one", EVERY, ids=[name for name, _ in EVERY])
def test_every_parameter_is_explained(name, one):
    text = inspect.getdoc(one)
    assert text, f"{name} has no docstring"
    for parameter in inspect.signature(one).parameters.values():
        if parameter.name != "self" and parameter.kind is not parameter.VAR_POSITIONAL:
            assert re.search(rf"\b{parameter.name}\b", text), f"{name}: nothing is said of `{parameter.name}`"


@pytest.mark.parametrize("one", [leakscope.audit, leakscope.release, leakscope.Network.train, leakscope.PrivateLinear, leakscope.text.train])
def test_types_and_defaults_are_those_of_the_signature(one):
    text = inspect.getdoc(one)
    for parameter in inspect.signature(one).parameters.values():
        if parameter.name != "self":
            line = re.search(rf"^{parameter.name} : (.+)$", text, re.M)
            assert line, f"no type of `{parameter.name}`"
            if parameter.default not in (parameter.empty, None):
                assert line[1].endswith(f"default {parameter.default!r}"), line[1]


def test_there_is_something_to_read():
    assert len(EVERY) > 40 and any(name.endswith("PrivateLogistic") for name, _ in EVERY)
