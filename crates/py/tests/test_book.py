"""Every public name of the package is in the book."""

import ast
import re

import pytest

from conftest import ROOT

PACKAGE = ROOT / "crates" / "py" / "python" / "leakscope"
BOOK = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md")))


def public(module):
    """What a module offers: its ``__all__``, or what it defines without an underscore."""
    tree = ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return [element.value for element in node.value.elts]
    return [n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and not n.name.startswith("_")]


def unsaid(names):
    return [name for name in names if not re.search(rf"\b{re.escape(name)}\b", BOOK)]


MODULES = sorted(path.stem for path in PACKAGE.glob("*.py") if path.stem == "__init__" or not path.stem.startswith("_"))


@pytest.mark.parametrize("module", MODULES)
def test_the_book_names_what_a_module_offers(module):
    names = public(module)
    assert names and unsaid(names) == []
    if module != "__init__":
        assert f"leakscope.{module}" in BOOK or f"`{module}`" in BOOK


def test_what_is_missing_would_be_seen():
    assert len(MODULES) >= 9 and unsaid(["audit", "no_such_name"]) == ["no_such_name"]
