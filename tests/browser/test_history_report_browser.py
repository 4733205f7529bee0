"""The report in a real browser: headless Chromium, offline, from a file.

It needs Chromium (Debian: apt-get install chromium). Set CHROMIUM to its path where a missing browser is to
be an error and not a reason to skip.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.history_report import random_report
from benchmarks.sample_history import sample_report
from tests.support.chromium import MISSING, Browser, browser, find_chromium
from tests.support.history_reports import HOSTILE, hostile_report, html_of, small_report

pytestmark = pytest.mark.skipif(find_chromium() is None, reason=MISSING)

DESK, PHONE = 1280, 390

CONTRASTS = """
(() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = (colour) => {
    const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = colour.map((v) => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const below = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = rgba(getComputedStyle(one).backgroundColor);
      if (colour[3] === 255) return colour.slice(0, 3);
    }
    return [255, 255, 255];
  };
  const found = {};
  for (const element of document.querySelectorAll("body *:not(script, style)")) {
    const text = [...element.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
    if (!text || element.closest(".timeline .on, title, desc")) continue;
    const style = getComputedStyle(element);
    const ink = element.closest("svg") ? style.fill : style.color;
    const [a, b] = [light(rgba(ink).slice(0, 3)), light(below(element))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) found[element.tagName + "." + element.getAttribute("class")] = ratio;
  }
  return found;
})()
"""
"""Texts whose contrast is below 4.5, what WCAG 2 asks of normal text (level AA)."""


@pytest.fixture(scope="module")
def page() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "sample.html"
    path.write_text(html_of(sample_report()), encoding="utf-8")
    return path


@pytest.fixture(params=["sample", "hostile", "large"])
def any_report(request: pytest.FixtureRequest, sample: Path, tmp_path: Path) -> Path:
    if request.param == "sample":
        return sample
    path = tmp_path / "report.html"
    hostile = request.param == "hostile"
    html = html_of(hostile_report(), HOSTILE) if hostile else html_of(random_report(3, 500))
    path.write_text(html, encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_it_opens_without_a_network_and_without_complaint(
    page: Browser, any_report: Path, width: int
) -> None:
    page.problems.clear()
    page.requests.clear()
    page.open(any_report, width=width)
    assert page.requests == [any_report.as_uri()]
    assert page.problems == []
    assert page.run("document.compatMode") == "CSS1Compat"


@pytest.mark.parametrize("width", [320, PHONE, 820, DESK])
def test_the_page_is_never_wider_than_the_window(page: Browser, any_report: Path, width: int) -> None:
    page.open(any_report, width=width)
    page.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    # What is far below is laid out only when it is asked for.
    assert page.run(
        "[...document.querySelectorAll('section')].map((one) => { one.style.contentVisibility = 'visible'; })"
        ".length > 0"
    )
    seen, there = page.run("[document.documentElement.scrollWidth, innerWidth]")
    assert seen <= there == width


def test_a_group_with_a_long_name_fits_on_a_phone(page: Browser, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(html_of(small_report("n" * 249, "orders")), encoding="utf-8")
    page.open(path, width=PHONE)
    assert page.run("document.documentElement.scrollWidth") == PHONE


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_all_groups_and_their_timelines_are_seen(page: Browser, sample: Path, width: int) -> None:
    page.open(sample, width=width)
    sizes = page.run(
        "[...document.querySelectorAll('section')].map((one) => {"
        " one.scrollIntoView(); const box = one.getBoundingClientRect();"
        " return [one.id, one.checkVisibility(), box.width, box.height]; })"
    )
    assert [name for name, *_ in sizes] == ["overview", "g1", "g2", "g3", "g4", "g5"]
    assert all(visible and wide > 300 and high > 200 for _, visible, wide, high in sizes)
    pictures = page.run(
        "[...document.querySelectorAll('svg.timeline')].map((one) => { one.scrollIntoView();"
        " const box = one.getBoundingClientRect(); const bars = one.querySelector('.bar').getBBox();"
        " return [box.width, box.height, bars.width, one.querySelectorAll('.on').length]; })"
    )
    assert len(pictures) == 5
    # Wide enough to be read: on a phone it scrolls in a box of its own.
    assert all(wide >= 700 and high >= 200 and bar > 100 and texts for wide, high, bar, texts in pictures)


def test_on_a_phone_the_overview_is_a_list_of_cards(page: Browser, sample: Path) -> None:
    positions = (
        "(() => { const [one, other] = document.querySelector('.overview tbody tr').querySelectorAll('td.n');"
        " return [one.getBoundingClientRect().top, other.getBoundingClientRect().top]; })()"
    )
    page.open(sample, width=DESK)
    first, second = page.run(positions)
    assert first == second
    page.open(sample, width=PHONE)
    first, second = page.run(positions)
    assert first < second


def test_names_of_strangers_run_nothing(page: Browser, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(html_of(hostile_report(), HOSTILE), encoding="utf-8")
    page.open(path, width=DESK)  # an alert would keep it from being loaded
    assert page.run("document.querySelectorAll('img').length + document.scripts.length") == 1
    assert page.run("document.querySelector('#g1 h2').lastChild.data.trim()") == HOSTILE


def test_the_overview_can_be_sorted(page: Browser, sample: Path) -> None:
    page.open(sample, width=DESK)
    names = "[...document.querySelectorAll('.overview tbody th')].map((one) => one.textContent)"
    by_rank = page.run(names)
    press = "document.querySelectorAll('.overview thead button')[{}].click()"
    page.run(press.format(1))
    assert page.run(names) == sorted(by_rank)
    assert page.run("document.querySelectorAll('.overview thead th')[1].ariaSort") == "ascending"
    page.run(press.format(1))
    assert page.run(names) == sorted(by_rank, reverse=True)
    page.run(press.format(2))  # by rebalances: 1, 2, 11, 31, 41, which are no words
    assert page.run(names) == by_rank[::-1]
    assert page.run("[...document.querySelectorAll('[aria-sort]')].length") == 1


def test_it_can_be_read_without_scripts(page: Browser, sample: Path) -> None:
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.open(sample, width=DESK)
        assert page.run("document.querySelectorAll('.overview thead button').length") == 0
        assert (
            page.run(
                "[...document.querySelectorAll('section')].filter((one) => one.checkVisibility()).length"
            )
            == 6
        )
    finally:
        page.call("Emulation.setScriptExecutionDisabled", value=False)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_texts_have_contrast(page: Browser, sample: Path, scheme: str) -> None:
    page.prefer(scheme)
    try:
        page.open(sample, width=DESK)
        page.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert page.run(CONTRASTS) == {}
        dark = page.run("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
        assert dark == (scheme == "dark")
    finally:
        page.prefer("light")


def test_it_prints_all_groups_with_everything_unfolded(page: Browser, sample: Path) -> None:
    page.open(sample, width=DESK)
    heights = "[...document.querySelectorAll('details:not([open])')].map(one => one.offsetHeight)"
    folded = page.run(heights)
    assert len(folded) == 10
    page.call("Emulation.setEmulatedMedia", media="print")
    assert min(page.run(heights)) > max(folded)
    pdf = page.print()
    assert pdf.startswith(b"%PDF")
    page.call("Emulation.setEmulatedMedia", media="")
    assert page.run(heights) == folded
    for group in sample_report():
        assert group.summary.group.encode() in pdf
    # Each group begins on a page of its own.
    assert len(re.findall(rb"/Type /Page\b", pdf)) > len(sample_report())
