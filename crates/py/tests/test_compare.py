"""``leakscope.compare``: as the command line compares folders, of results and folders alike."""

import json
import pickle

import pytest

import leakscope
from conftest import command_line, timeless


@pytest.fixture(scope="module")
def audits(request):
    path = request.getfixturevalue("patients")
    options = dict(target="dose", id="patient", l2=0.1, holdout=0.2, seed=1)
    return [leakscope.audit(path, sigma=sigma, **options) for sigma in (8.0, 1.0)]


def test_results_and_folders_alike(audits, tmp_path):
    for name, audit in zip(("quiet", "loud"), audits):
        audit.save(tmp_path / name)
    ours = leakscope.compare(*audits, names=["quiet", "loud"], fail_on=["regression", "eta=10%"])
    mixed = leakscope.compare(tmp_path / "quiet", audits[1], names=["quiet", "loud"], fail_on=["regression", "eta=10%"])
    done = command_line("compare", tmp_path / "quiet", tmp_path / "loud", "--json", "--fail-on=regression,eta=10%")
    theirs = json.loads(done.stdout)
    assert done.returncode == 1

    def plain(result):
        result = timeless(result)
        result["results"] = [{k: v for k, v in r.items() if k not in ("file", "created")} for r in result["results"]]
        return result

    assert plain(ours.document) == plain(mixed.document) == plain(theirs)
    assert not ours.holds and len(ours.unmet) == 2
    eta = next(n for n in ours.numbers if n["name"] == "η of a record, largest")
    assert eta["worse"] == "up" and eta["values"][1] == pytest.approx(8 * eta["values"][0], rel=1e-6)
    same = leakscope.compare(audits[0], audits[0], fail_on="regression")
    assert same.holds and same.unmet == []
    assert [r["name"] for r in same["results"]] == ["result 1", "result 2"]


def test_pages_and_pipelines(audits, tmp_path):
    result = leakscope.compare(*audits, out=tmp_path / "out")
    assert {"compare.json", "report.html"} <= {p.name for p in (tmp_path / "out").iterdir()}
    assert "leakscope-card" in result._repr_html_() and "WORSE" in result.summary()
    assert result.pipeline().startswith("#") and "<testsuite" in result.pipeline("junit") and json.loads(result.pipeline("sarif"))
    with pytest.raises(leakscope.OptionError, match="format"):
        result.pipeline("pdf")
    assert pickle.loads(pickle.dumps(result)).document == result.document


def test_answers_without_a_table():
    accounts = [leakscope.account(sigma=sigma, delta=1e-5) for sigma in (4, 2)]
    result = leakscope.compare(*accounts, fail_on="regression")
    assert result["kind"] == "account" and not result.holds
    noise = [leakscope.calibrate(epsilon=e, delta=1e-5, rate=0.1, steps=10, adjacency="add-remove") for e in (1, 4)]
    assert leakscope.compare(*noise)["kind"] == "calibrate"
    with pytest.raises(leakscope.LeakscopeError, match="its δ is"):
        leakscope.compare(accounts[0], leakscope.account(sigma=4, delta=1e-6))


def test_what_cannot_be_compared(audits, tmp_path):
    account = leakscope.account(sigma=2, delta=1e-5)
    with pytest.raises(leakscope.LeakscopeError, match="different kinds.*holds audit.*holds account"):
        leakscope.compare(audits[0], account)
    with pytest.raises(leakscope.LeakscopeError, match="at least two"):
        leakscope.compare(audits[0])
    with pytest.raises(leakscope.LeakscopeError, match="does not exist"):
        leakscope.compare(audits[0], tmp_path / "no")
    with pytest.raises(leakscope.OptionError, match="fail_on"):
        leakscope.compare(*audits, fail_on="blue")
    with pytest.raises(leakscope.OptionError, match="kind"):
        leakscope.compare(*audits, kind="colour")
    for names in (["a"], ["a", "a"], ["a", "b/c"], ["a", ""]):
        with pytest.raises(leakscope.OptionError, match="names"):
            leakscope.compare(*audits, names=names)
    with pytest.raises(leakscope.OptionError, match="expected results or folders"):
        leakscope.compare(audits[0], 3)
    old = audits[0].save(tmp_path / "old")
    path = next(p for p in old if p.name == "audit.json")
    path.chmod(0o600)
    path.write_text(path.read_text().replace("leakscope.audit/2", "leakscope.audit/1"))
    with pytest.raises(leakscope.LeakscopeError, match="another version.*audit/1.*audit/2"):
        leakscope.compare(audits[0], tmp_path / "old")
