"""What the tests share: the repository, the command line beside the wheel, tables to audit."""

import json
import os
import pathlib
import subprocess

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]


def command_line(*words):
    """Runs the command line on the same machine; the tests need it to compare with."""
    binary = os.environ.get("LEAKSCOPE_BIN") or ROOT / "target" / "debug" / "leakscope"
    return subprocess.run([str(binary), *map(str, words)], capture_output=True, text=True, check=False)


def document(*words):
    """The JSON that the command line prints."""
    done = command_line(*words, "--json")
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def timeless(result):
    """A document without what differs from run to run."""
    def inside(v):
        return timeless(v) if isinstance(v, dict) else v

    return {k: inside(v) for k, v in result.items() if k not in ("created", "timings", "seconds")}


@pytest.fixture(scope="session")
def patients():
    return ROOT / "examples" / "patients.csv"


@pytest.fixture(scope="session")
def golden():
    return lambda name: json.loads((ROOT / "testdata" / name).read_text())


@pytest.fixture
def linear():
    """An array, a target: well behaved, 400 × 5."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=(400, 5)) * [1, 2, 0.5, 10, 1] + [0, 1, 0, -5, 3]
    return x, x @ [1, -0.5, 2, 0.1, 0] + rng.normal(size=400)
