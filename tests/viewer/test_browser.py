"""The pages in a real browser: they draw, they answer hands and keys, and hostile text is inert."""

import json

import pytest

from stretto.trace import Agent, Decision, Event, Trace
from stretto.viewer.report import run_report, trace_report

HOSTILE = "</script><img src=x onerror=\"document.title='owned'\">"
VIEWER = "document.querySelector('.viewer').viewer"


@pytest.fixture
def opened(browser, tmp_path):
    """Write a page, open it, and afterwards insist that it neither complained nor loaded."""

    def show(page, fragment="", width=1200):
        path = tmp_path / "page.html"
        path.write_text(page, encoding="utf-8")
        browser.size(width, 900)
        browser.open(path, fragment)
        return browser

    yield show
    assert browser.complaints == []
    assert all(url.startswith(("file:", "about:")) for url in browser.requests)


def ink(browser):
    """How many pixels of the lanes are painted."""
    return browser.run(
        "(() => { const c = document.querySelector('.lanes');"
        "return c.getContext('2d').getImageData(0, 0, c.width, c.height).data"
        ".filter((value, index) => index % 4 === 3 && value).length; })()"
    )


def test_lanes_are_drawn_and_keys_walk(opened, scouts):
    browser = opened(trace_report(scouts))
    browser.run("new Promise(requestAnimationFrame)")
    assert ink(browser) > 20_000
    browser.run("document.querySelector('.scroller').focus()")
    before = browser.run(f"{VIEWER}.view.scale")
    browser.key("+")
    assert browser.run(f"{VIEWER}.view.scale") > before
    browser.key("ArrowRight")
    browser.key("ArrowRight")
    assert browser.run("decodeURIComponent(location.hash)") == "#scouts@0/0#1"
    assert "0#1" in browser.run("document.querySelector('.details h3').textContent")


def test_a_deep_link_opens_its_event(opened, scouts):
    browser = opened(trace_report(scouts), "#scouts%402/0%230")
    assert browser.run("document.querySelector('.details h3').textContent") == "0#0"
    assert browser.run(f"{VIEWER}.index") == 2
    assert browser.run(
        "document.querySelector('.candidates .chosen .name').textContent"
    ).startswith("seven")


def test_search_finds_in_the_data(opened, scouts):
    browser = opened(trace_report(scouts))
    looks = sum(event.tool == "look" for event in scouts[0].events)
    browser.run(f"{VIEWER}.find('search').value = 'LOOK'; {VIEWER}.filter()")
    found = browser.run(f"{VIEWER}.find('matches').textContent")
    reports = sum(
        "look" in str(scouts[0].text(event.content)).lower() for event in scouts[0].events
    )
    assert int(found.split()[0]) >= max(looks, reports) > 0


def test_page_reads_the_payload_as_it_was_written(opened, scouts, decoded):
    page = trace_report(scouts)
    browser = opened(page)
    assert browser.run(f"JSON.stringify({VIEWER}.payload)") == json.dumps(
        decoded(page), separators=(",", ":"), ensure_ascii=False
    ).replace(".0,", ",").replace(".0]", "]")


def test_hostile_text_is_only_text(opened):
    decision = Decision(candidates=(HOSTILE, "stop"), chosen=0)
    events = (
        Event(id=HOSTILE, kind=HOSTILE, agent=HOSTILE, content="h", attrs={HOSTILE: HOSTILE}),
        Event(id="2", kind="constructor", agent=HOSTILE, tool="__proto__", decision=decision),
    )
    trace = Trace(
        id=HOSTILE,
        agents=(Agent(id=HOSTILE, role=HOSTILE),),
        events=events,
        contents={"h": HOSTILE},
    )
    browser = opened(trace_report([trace]))
    for row in (0, 1):
        browser.run(f"{VIEWER}.view.select({row}); {VIEWER}.hint({row}, 9, 9)")
        browser.run("new Promise((done) => setTimeout(done, 30))")
    assert browser.run("document.images.length") == 0
    assert browser.run("document.title") != "owned"
    assert HOSTILE in browser.run("document.querySelector('.viewer .legend').textContent")


def test_a_trace_without_times_stands_in_causal_order(opened):
    events = tuple(Event(id=str(n), kind="message", agent="0") for n in range(3))
    browser = opened(trace_report([Trace(id="t", agents=(Agent(id="0"),), events=events)]))
    assert browser.run(f"{VIEWER}.view.layout.axis") == "cause"
    assert browser.run(f"{VIEWER}.find('time').disabled") is True
    assert browser.run(f"{VIEWER}.find('untimed').hidden") is False
    facts = browser.run("document.querySelector('.viewer .facts').textContent")
    assert "makespanunknown" in facts


def test_an_empty_trace(opened):
    browser = opened(trace_report([Trace(id="nothing")]))
    assert browser.run("document.querySelector('.details h3').textContent") == "nothing"


def test_the_run_page_fits_a_phone(opened, run_folder):
    browser = opened(run_report(run_folder), width=400)
    assert browser.run("document.documentElement.scrollWidth") == 400
    labels = browser.run(
        "[...document.querySelectorAll('.chart .label')].map((label) => label.textContent)"
    )
    assert {"optimum 0.7721", "exact value 0.6300", "guess 0.5000"} <= set(labels)
    browser.run("document.querySelector('.chart svg').focus()")
    browser.key("ArrowRight")
    assert browser.run("document.querySelector('.readout strong').textContent") == "step 1"
