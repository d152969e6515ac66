"""The site as a reader meets it: pages in a browser, its search, its links, and how far away answers are.

The site is built anew, in some 90 s of processor time; PHYSKIT_SITE names one that is built already.
"""

import functools
import html
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import pytest

from tests.snippets import ROOT

pytestmark = pytest.mark.slow

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium on the PATH: apt install chromium"
)

# A page each, and a word that only its text has.
PAGES = {
    "index.html": "physkit",
    "start/first-simulation.html": "VelocityVerlet",
    "recipes/constant-pressure.html": "barostat",
    "recipes/restart.html": "resume",
    "coming-from/lammps.html": "pair_style",
    "gallery/index.html": "Gallery",
    "gallery/weather.html": "Notebook",
    "api/index.html": "pk.limiters",
    "trust.html": "published",
    "lattice-boltzmann.html": "D2Q9",
    "searches.html": "CMAES",
    "generated/published-numbers.html": "computed",
}
# What is searched for, and pages of which one must be among the first three found.
SEARCHES = {
    "pressure": ("recipes/constant-pressure", "baths"),
    "NPT": ("recipes/constant-pressure", "baths"),
    "Langevin": ("recipes/constant-pressure", "baths"),
    "restart": ("recipes/restart",),
    "GPU": ("recipes/gpu", "gpus"),
    "barostat": ("recipes/constant-pressure",),
    "error bars": ("recipes/error-bars",),
    "own force": ("recipes/own-force",),
    "Slurm": ("recipes/slurm",),
    "notebook": ("notebooks",),
    "Chebyshev": ("coming-from/dedalus",),
    "film": ("recipes/pictures",),
    "search without gradients": ("searches",),
}
# What must be at most three clicks from the front page.
ANSWERS = {
    "constant pressure": "recipes/constant-pressure.html",
    "resume": "recipes/restart.html",
    "error bars": "recipes/error-bars.html",
    "an own force": "recipes/own-force.html",
    "what is not there": "coming-from/index.html#what-is-not-here",
    "a notebook": "notebooks.html",
    "a job on a cluster": "recipes/slurm.html",
    "what is called how in Dedalus": "coming-from/dedalus.html",
    "searches without gradients": "searches.html",
}


class Page(HTMLParser):
    """The links of a page and the names that links may end at."""

    def __init__(self, text: str):
        super().__init__()
        self.links: list[str] = []
        self.files: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.names |= {found[key] for key in ("id", "name") if found.get(key)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag in ("img", "script", "source", "video") and found.get("src"):
            self.files.append(found["src"])
        if tag == "link" and found.get("href"):
            self.files.append(found["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if built := os.environ.get("PHYSKIT_SITE"):
        return Path(built)
    pytest.importorskip("sphinx", reason="the docs extra is not installed")
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", folder / "trees",
         ROOT / "docs", folder / "html"],
        check=True, cwd=ROOT,
    )  # fmt: skip
    return folder / "html"


@pytest.fixture(scope="module")
def read(site):
    """A page by its path, read once."""
    return functools.cache(lambda path: Page(Path(path).read_text(encoding="utf-8")))


def target(page: Path, link: str) -> tuple[Path, str] | None:
    """File and anchor that a link of a page leads to; None for one that leads out of the site."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    path = page if not parts.path else Path(os.path.normpath(page.parent / unquote(parts.path)))
    return path, unquote(parts.fragment)


def test_all_links_lead_somewhere(site, read):
    wrong, checked = [], 0
    for page in sorted(site.rglob("*.html")):
        # Pages of sources link back to members that the reference does not list by themselves; `_static` has
        # a template of the theme.
        if {"_modules", "_static"} & set(page.parts):
            continue
        found = read(page)
        for link in dict.fromkeys((*found.links, *found.files)):
            if (place := target(page, link)) is None:
                continue
            path, anchor = place
            checked += 1
            if not path.exists():
                wrong.append(f"{page.relative_to(site)}: {link}")
            elif anchor and path.suffix == ".html" and anchor not in read(path).names:
                wrong.append(f"{page.relative_to(site)}: no {link}")
    assert checked > 10_000
    assert not wrong, wrong[:20]


def test_answers_are_three_clicks_away(site, read):
    clicks = {(site / "index.html", ""): 0}
    queue = list(clicks)
    for place in queue:
        # An anchor is on its page: who is on the page has not clicked again.
        if clicks[place] < 3:
            for link in read(place[0]).links:
                there = target(place[0], link)
                is_page = there and there[0].suffix == ".html" and there[0].exists()
                if is_page and there not in clicks:
                    clicks[there] = clicks[place] + 1
                    queue.append(there)
    for what, answer in ANSWERS.items():
        path, _, anchor = answer.partition("#")
        assert (site / path, anchor) in clicks, what


def show(url: str, profile: Path) -> str:
    """The page as the browser has it after its scripts."""
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
         "--virtual-time-budget=20000", "--dump-dom", url],
        check=True, capture_output=True, timeout=120, text=True,
    )  # fmt: skip
    return done.stdout


@needs_browser
@pytest.mark.parametrize(("path", "word"), PAGES.items())
def test_a_browser_opens(path, word, site, tmp_path):
    text = show((site / path).as_uri(), tmp_path)
    body = re.search(r"<article.*?</article>", text, re.DOTALL)
    assert body, path
    assert word in html.unescape(body[0])


@needs_browser
@pytest.mark.parametrize(("word", "expected"), SEARCHES.items())
def test_search_finds(word, expected, site, tmp_path):
    text = show(f"{(site / 'search.html').as_uri()}?q={quote(word)}", tmp_path)
    found = re.search(r'<ul[^>]*class="search".*?</ul>', text, re.DOTALL)
    assert found, "the search shows no list"
    first = [urlsplit(link).path for link in re.findall(r'<a href="([^"]+)"', found[0])][:3]
    assert any(page in link for link in first for page in expected), first
