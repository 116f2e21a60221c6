"""What a notebook shows: a card that is small, whole and safe, and the way to the page."""

import html.parser
import re

import numpy as np
import pytest

import leakscope


class Tags(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen, self.attributes = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += attrs
        if tag not in ("rect", "line"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def read(card):
    tags = Tags()
    tags.feed(card)
    assert tags.open == [], "every element is closed"
    assert not {"script", "iframe", "img", "link", "object"} & set(tags.seen), "nothing runs and nothing is fetched"
    assert not [name for name, _ in tags.attributes if name.startswith("on")]
    assert "url(" not in card and "@import" not in card and "http" not in card
    assert len(card.encode()) < 30_000
    return tags


def verdict(page):
    return re.search(r'<section class="verdict (\w+)"[^>]*><p class="level">(.*?)</p>', page).groups()


def results(linear):
    x, y = linear
    rng = np.random.default_rng(0)
    records, labels = rng.normal(size=(40, 4)), rng.integers(0, 2, 40)
    network = leakscope.Network("linear", input=(4,), outputs=2, seed=1)
    run = network.train(records, labels, epsilon=4, delta=1e-3, clip=1.0, steps=4, batch=10, lr=0.1, track=True)
    yield leakscope.audit(x, y, sigma=0.1)
    yield leakscope.balance(x, y, iterations=2)
    yield leakscope.account(sigma=2, delta=1e-5)
    yield leakscope.bound(candidates=10, mechanism="gaussian", sigma=1.0, trials=100)
    yield run
    yield network.audit(records, labels, seed=1)


def test_every_card_says_what_its_page_says(linear):
    for result in results(linear):
        card, page = result._repr_html_(), result._outcome.page()
        read(card)
        colour, headline = verdict(page)
        assert f'class="leakscope-card {colour}"' in card and headline in card, type(result)
        tiles = re.findall(r"<b>(.*?)</b>", card)
        assert len(tiles) == min(4, page.count('<div class="tile"')) and all(tile.strip() for tile in tiles), type(result)
        assert ("<svg" in card) == ("histogram" in dir(result.plot)), type(result)


def test_a_histogram_has_every_record(linear):
    result = leakscope.audit(*linear, sigma=0.1)
    card = result._repr_html_()
    heights = [float(h) for h in re.findall(r'<rect [^>]*height="([\d.]+)"', card)]
    assert 0 < len(heights) <= 40 and max(heights) == 64.0
    counts = np.sum([s["counts"] for s in result["records"]["histogram"]["series"]], axis=0)
    assert counts.sum() == result["n"]


def test_names_from_the_data_stay_text():
    rng = np.random.default_rng(0)
    bad = "<script>alert(1)</script>\"'&"
    x = rng.normal(size=(60, 2))
    card = leakscope.audit(x, x @ [1.0, 2.0] + rng.normal(size=60), columns=["a", "b"], target=bad, sigma=0.01, l2=0.1)._repr_html_()
    read(card)
    assert "<script" not in card and "&lt;script" in card


def test_the_way_to_the_page(linear, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = leakscope.audit(*linear, sigma=0.1)
    assert ".open()" in result._repr_html_() and "<a " not in result._repr_html_()
    # Near the notebook the link is relative, as its server resolves it; elsewhere it names the file.
    result.save("some results")
    assert 'href="some%20results/report.html"' in result._repr_html_()
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    assert f'href="{(tmp_path / "some results" / "report.html").as_uri()}"' in result._repr_html_()
    # A page that is gone is not linked to.
    (tmp_path / "some results" / "report.html").unlink()
    assert "<a " not in result._repr_html_()


def test_a_page_is_shown_in_a_file_of_its_own(linear, monkeypatch):
    shown = []
    monkeypatch.setattr("webbrowser.open", shown.append)
    result = leakscope.audit(*linear, sigma=0.1)
    path = result.open()
    assert shown == [path.as_uri()] and path.read_text().startswith("<!")
    assert (path.stat().st_mode & 0o077) == 0 and (path.parent.stat().st_mode & 0o077) == 0
    assert result.open() == path, "one page is enough"
    with pytest.raises(leakscope.LeakscopeError, match="no page"):
        leakscope.calibrate(epsilon=1, delta=1e-5, rate=0.1, steps=10, adjacency="add-remove").open()
