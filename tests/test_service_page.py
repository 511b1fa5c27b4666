"""The page of the service in a real browser: what it shows, what its controls do, and to whom."""

import os
import time

import browser
import pytest
from service import ADS, serving

import paceline as pl
from paceline.fleet.store import open_store
from paceline.service.tokens import add_token

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.browser

WIDTHS = (1440, 768, 390)
TWO = {
    "arms": ["a", "b"],
    "budget": {"dollars": 0.5, "tokens": 10.0},
    "max_cost": {"dollars": 1.0, "tokens": 100.0},
}
MANY = [f"creative {number:02}" for number in range(40)]


@pytest.fixture(scope="module")
def chromium():
    """A developer may do without; where everything is to be checked, a missing browser is an error."""
    if browser.BROWSER is None:
        message = f"NO BROWSER: none of {', '.join(browser.BROWSERS)} is on the PATH; `apt-get install chromium`"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(message)
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=browser.BROWSER, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A service with some bandits, and tokens of two roles."""
    folder = tmp_path_factory.mktemp("page")
    with open_store(f"sqlite:///{folder}/ads.db") as store:
        tokens = {role: add_token(store, f"the-{role}", role) for role in ("reader", "operator")}
        store.make("ads", ADS, "test")
        store.make("many", {"arms": MANY, "budget": 0.5}, "test")
        store.make("odd", {"arms": ["<img src=x onerror=alert(1)>", "b&b"], "budget": 0.5}, "test")
        store.make("poor", {"arms": ["a", "b"], "budget": 0.001}, "test")
        store.make("two", TWO, "test")
    with serving(folder) as process:
        process.tokens, process.store = tokens, f"sqlite:///{folder}/ads.db"
        yield process


@pytest.fixture
def look(chromium, served):
    """Open the page as somebody; afterwards nothing must have been complained of."""
    contexts, complaints, refusals = [], [], {401}

    def open_page(name="ads", role="operator", width=1440, dark=False):
        scheme = "dark" if dark else "light"
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append((message.type, message.text)))
        page.on("pageerror", lambda error: complaints.append(("error", str(error))))
        page.goto(f"{served.address}/#{name}")
        if role is not None:
            page.fill("#token", served.tokens[role])
            page.click("#sign-in-form button")
            page.wait_for_selector("#board:not([hidden])")
        return page

    open_page.refusals = refusals
    yield open_page
    for context in contexts:
        context.close()
    # The browser itself notes that a request was refused; a test of a refusal says which.
    assert [text for _, text in complaints if not any(f"status of {status}" in text for status in refusals)] == []


def until(page, condition, seconds=60.0):
    """Wait until something is true in the page; its policy forbids the browser's own way of waiting for it."""
    end = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < end, f"never true: {condition}"
        page.wait_for_timeout(50)


def says(page, id, text):
    until(page, f"document.getElementById({id!r}).textContent.includes({text!r})")


def connected(served, name="ads"):
    return pl.connect(served.address, name, token=served.tokens["operator"], deadline=10.0)


def play(bandit, rounds, reward=0.5, cost=0.1):
    for _ in range(rounds):
        decision = bandit.ask()
        if decision.arm is not None:
            bandit.tell(decision.id, reward=reward, cost=cost)
    assert bandit.flush(20)


def number(text):
    return float(text.split()[0].replace(",", ""))


def test_a_token_is_asked_for_and_a_wrong_one_is_refused(look, served):
    page = look(role=None)
    page.wait_for_selector("#sign-in:not([hidden])")
    assert page.evaluate("document.activeElement.id") == "token"
    page.fill("#token", "wrong")
    page.keyboard.press("Enter")
    says(page, "sign-in-wrong", "not known")
    page.fill("#token", served.tokens["reader"])
    page.keyboard.press("Enter")
    page.wait_for_selector("#board:not([hidden])")
    assert served.tokens["reader"] not in page.url + page.content()
    assert page.evaluate("localStorage.length") == 0
    page.click("#sign-out")
    page.wait_for_selector("#sign-in:not([hidden])")
    assert page.evaluate("sessionStorage.length") == 0


def test_what_is_asked_for_elsewhere_is_seen_and_the_line_moves(look, served):
    page = look()
    before = number(page.inner_text("#figures dd"))
    with connected(served) as bandit:
        play(bandit, 20)
        until(page, f"Number(document.querySelector('#figures dd').textContent) >= {before + 20}")
        first = page.get_attribute("#plot", "aria-label")
        play(bandit, 20)
    until(page, f"Number(document.querySelector('#figures dd').textContent) >= {before + 40}")
    until(page, f"document.getElementById('plot').getAttribute('aria-label') !== {first!r}")
    assert page.locator("#plot canvas").count() == 1
    assert page.locator("#decisions > li").count() > 5
    page.locator("#decisions button.decision").first.click()
    page.wait_for_selector("#decisions .detail")
    assert "Headroom after it" in page.inner_text("#decisions .detail")
    assert page.get_attribute("#hold", "aria-pressed") == "true"


def test_an_operator_pauses_and_resumes_an_arm(look, served):
    page = look()
    page.click("button[aria-label='Pause video']")
    assert "Pause video?" in page.inner_text("#confirm")
    page.click("#confirm-no")
    with connected(served) as bandit:
        assert bandit.arms["video"] == "active"
        page.click("button[aria-label='Pause video']")
        page.click("#confirm-yes")
        page.wait_for_selector("button[aria-label='Resume video']")
        says(page, "toasts", "video is paused.")
        assert bandit.arms["video"] == "paused"
        page.click("button[aria-label='Resume video']")
        page.click("#confirm-yes")
        page.wait_for_selector("button[aria-label='Pause video']")
        assert bandit.arms["video"] == "active"


def test_an_operator_credits_money_and_sees_the_line_move(look, served):
    page = look()
    with connected(served) as bandit:
        before = bandit.credited
        page.fill("#control-credit input", "25")
        page.click("#control-credit button")
        assert "Headroom goes from" in page.inner_text("#confirm")
        page.click("#confirm-yes")
        says(page, "toasts", "25.00 credited to ads.")
        assert bandit.credited == pytest.approx(before + 25.0)
    label = "document.getElementById('plot').getAttribute('aria-label')"
    until(page, f"Number({label}.match(/of ([0-9.,]+) credited/)[1].replace(',', '')) >= {before + 25 - 0.01}")
    page.click("#acts-box summary")
    says(page, "acts", "credited 25.00")
    assert "the-operator" in page.inner_text("#acts")


def test_what_operators_did_last_is_shown_however_long_the_list_is(look, served):
    with open_store(served.store) as store:
        store.make("old", {"arms": ["a", "b"], "budget": 0.5}, "test")
        for number in range(1005):
            store.note("old", "test", {"remark": number})
    page = look("old")
    page.click("#acts-box summary")
    says(page, "acts", "remark 1004")
    assert page.locator("#acts li").count() == 50
    page.click("button[aria-label='Pause a']")
    page.click("#confirm-yes")
    says(page, "acts", "paused a")
    assert page.locator("#acts li").count() == 50


def test_an_operator_changes_the_budget_and_adds_an_arm(look, served):
    page = look("two")
    assert page.get_attribute("#control-budget [data-resource=dollars]", "placeholder") == "now 0.500"
    page.fill("#control-budget [data-resource=dollars]", "0.25")
    page.fill("#control-budget [data-resource=tokens]", "5")
    page.click("#control-budget button")
    page.click("#confirm-yes")
    says(page, "toasts", "a round")
    until(page, "document.querySelector('#control-budget [data-resource=dollars]').placeholder === 'now 0.250'")
    page.fill("#control-arm [name=arm]", "c")
    page.fill("#control-arm [data-resource=dollars]", "0.5")
    page.fill("#control-arm [data-resource=tokens]", "50")
    page.click("#control-arm button")
    page.click("#confirm-yes")
    page.wait_for_selector("button[aria-label='Pause c']")
    page.click("#resources button:nth-child(2)")
    assert page.get_attribute("#resources button:nth-child(2)", "aria-pressed") == "true"


def test_an_operator_closes_a_worker_that_is_silent(look, served):
    silent = pl.join(served.store, "poor", worker="silent", sync_every=None)
    try:
        for _ in range(500):
            silent.ask()
        silent.sync()
        held = f"{silent.headroom:.3f}"
        page = look("poor", width=390)
        page.wait_for_selector("#workers .tag.stale", timeout=40_000)
        says(page, "notes", "A worker is silent")
        says(page, "workers-more", f"Stranded with 1 silent: {held}.")
        assert "500" in page.inner_text("#workers")  # its rounds, on a telephone, too
        page.click("#workers button:visible")
        assert "You assert that this worker is dead" in page.inner_text("#confirm")
        page.click("#confirm-yes")
        says(page, "toasts", "silent is closed.")
        until(page, "!document.getElementById('workers').textContent.includes('silent')")
        says(page, "workers-more", f"Stranded with 1 closed: {held}.")
        says(page, "figures", f"{held} of it stranded")
        assert [act.what["close"] for act in open_store(served.store).acts("poor") if "close" in act.what] == ["silent"]
    finally:
        silent.close()


def test_a_refusal_is_shown_and_nothing_is_done(look):
    look.refusals.add(422)
    page = look()
    page.fill("#control-arm [name=arm]", "<script>")
    page.fill("#control-arm [data-resource=cost]", "1")
    page.click("#control-arm button")
    page.click("#confirm-yes")
    says(page, "confirm-wrong", "must be a name")
    assert page.is_visible("#confirm")
    page.keyboard.press("Escape")
    assert not page.is_visible("#confirm")


def test_a_reader_sees_everything_and_can_change_nothing(look):
    look.refusals.add(403)
    page = look(role="reader")
    assert page.is_disabled("button[aria-label='Pause video']")
    for control in ("credit", "budget", "arm"):
        assert page.is_disabled(f"#control-{control} button")
    assert "may look, not change" in page.inner_text("#controls-note")
    found = page.evaluate(
        """async () => {
          const kept = sessionStorage.getItem('paceline-token');
          const headers = { Authorization: `Bearer ${kept}`, 'Content-Type': 'application/json' };
          const answer = await fetch('v1/bandits/ads/credit', { method: 'POST', headers, body: '{"amount": 1}' });
          return [answer.status, (await answer.json()).detail];
        }"""
    )
    assert found == [403, "this must be done by a token of role operator, got one of role reader"]


def test_a_bandit_that_starves_says_so(look, served):
    with connected(served, "poor") as bandit:
        play(bandit, 120)
        page = look("poor")
        says(page, "notes", "Starving")
        assert "– best" in page.inner_text("#arms")  # nothing was pulled: no share is the best yet
        assert "nothing is known yet" in page.inner_text("#figures")  # nor what a unit is worth


@pytest.mark.parametrize("width", WIDTHS)
def test_the_reason_of_a_decision_has_room_beside_a_long_outcome(look, served, width):
    with connected(served, "two") as bandit:
        while (decision := bandit.ask()).arm is None:
            pass
        bandit.tell(decision.id, reward=0.718281, cost={"dollars": 0.489123, "tokens": 44.904321})
        assert bandit.flush(20)
        page = look("two", width=width)
        says(page, "decisions", "44.90 tokens")
    words = "[...document.querySelectorAll('#decisions .why')].map(each => each.getBoundingClientRect().width)"
    assert min(page.evaluate(words)) > 100.0


def test_the_reason_of_a_round_that_was_sat_out_has_the_room_of_an_outcome(look, served):
    with connected(served, "poor") as bandit:
        play(bandit, 20)
        page = look("poor", width=768)
        says(page, "decisions", "largest cost 1")
    heights = "[...document.querySelectorAll('#decisions .why')].map(each => each.getBoundingClientRect().height)"
    assert max(page.evaluate(heights)) < 30.0  # one line


def test_a_rest_in_the_pool_that_is_less_than_what_is_shown_is_not_mentioned(look, served):
    with open_store(served.store) as store:
        store.make("rest", {"arms": ["a"], "budget": 0.5, "start": 2.0 + 2.0**-20}, "test")
    with connected(served, "rest") as bandit:
        play(bandit, 10)
        page = look("rest")
        says(page, "figures", "may still be spent")


def test_names_that_are_markup_stay_texts(look, served):
    page = look("odd")
    assert "<img src=x onerror=alert(1)>" in page.inner_text("#arms")
    assert page.locator("#arms img").count() == 0


def test_forty_arms_can_be_sorted_and_filtered(look, served):
    with connected(served, "many") as bandit:
        play(bandit, 60)
        page = look("many")
        assert page.locator("#arms tbody tr").count() == 40
        page.fill("#arms-filter", "creative 07")
        assert page.locator("#arms tbody tr").count() == 1
        page.fill("#arms-filter", "nothing like it")
        assert page.is_visible("#arms-none")
        page.fill("#arms-filter", "")
        page.click("#arms-arm button")
        page.click("#arms-arm button")
        assert page.inner_text("#arms tbody tr th").startswith("creative 39")
        assert page.get_attribute("#arms-arm", "aria-sort") == "descending"


STICKING_OUT = """width => [...document.querySelectorAll('main *')]
  .filter(part => part.getClientRects().length && !part.closest('.unseen, thead, .u-wrap'))
  .filter(part => part.getBoundingClientRect().right > width + 1).map(part => part.outerHTML.slice(0, 80))"""
INKS = """[...document.querySelectorAll('h1, h2, .soft, dt, dd, th, td, .pill, .tag, button, label, .note span')]
  .filter(part => part.getClientRects().length && !part.disabled && !part.closest('tr.out')).map(part => {
    let back = part;
    while (back && getComputedStyle(back).backgroundColor === 'rgba(0, 0, 0, 0)') back = back.parentElement;
    const paper = getComputedStyle(back ?? document.body).backgroundColor;
    return [getComputedStyle(part).color, paper, part.outerHTML.slice(0, 80)];
  })"""
NAMELESS = """[...document.querySelectorAll('button, input, select, summary, a')]
  .filter(part => part.getClientRects().length && !part.getAttribute('aria-label') && !part.textContent.trim())
  .filter(part => !part.labels?.[0]?.textContent.trim()).map(part => part.outerHTML)"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["ads", "many", "two"])
def test_the_page_fits_and_can_be_read(look, served, name, width, dark):
    with connected(served, name) as bandit:
        play(bandit, 12, cost={"dollars": 0.123, "tokens": 87.5} if name == "two" else 0.1)
    page = look(name, width=width, dark=dark)
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "the page must be scrolled sideways"
    assert page.evaluate(STICKING_OUT, width) == []
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (browser.luminance(paper) < 0.1) == dark
    assert [(ink, back, what) for ink, back, what in page.evaluate(INKS) if browser.contrast(ink, back) < 4.5] == []


def test_everything_can_be_reached_with_the_keyboard_and_has_a_name(look):
    page = look()
    assert page.evaluate(NAMELESS) == []
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.textContent.trim() || document.activeElement.name || ''"))
    assert {"Pause", "Hold", "Credit…", "Change…", "Add…", "What operators did"} <= reached


def test_a_page_finds_the_service_again(chromium, tmp_path):
    with serving(tmp_path) as process:
        port = process.address.rpartition(":")[2]
        with pl.connect(process.address, "ads", deadline=10.0) as bandit:
            bandit._call("PUT", "", ADS)
        page = chromium.new_page()
        page.goto(process.address)
        page.wait_for_selector("#link[data-state=live]")
        process.stop()
    says(page, "notes", "Connection lost")
    with serving(tmp_path, "--port", port):
        page.wait_for_selector("#link[data-state=live]", timeout=90_000)
        until(page, "!document.getElementById('notes').textContent.includes('Connection lost')")
    page.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_without_the_store_the_page_says_what_it_does_not_know(chromium, tmp_path, width):
    with open_store(f"sqlite:///{tmp_path}/ads.db") as store:
        token = add_token(store, "me", "operator")
        for name in ("ads", "a-bandit-with-a-rather-long-name"):
            store.make(name, ADS, "test")
    with serving(tmp_path) as process:
        page = chromium.new_page(viewport={"width": width, "height": 900})
        page.goto(f"{process.address}/#ads")
        page.fill("#token", token)
        page.click("#sign-in-form button")
        page.wait_for_selector("#link[data-state=live]")
        says(page, "workers", "fresh")
        complaints = []
        page.on("console", lambda message: complaints.append(message.text))
        for file in tmp_path.glob("ads.db*"):
            file.rename(tmp_path / f"gone-{file.name}")
        says(page, "link", "Store gone")
        says(page, "notes", "Store unreachable")
        until(page, "!document.getElementById('workers').innerText.includes('fresh')")
        says(page, "figures", "nobody knows now")
        assert page.evaluate("document.querySelector('.bar').offsetHeight") <= 60, "the head is two lines"
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("document.querySelector('#arms .act button').disabled")
        page.reload()
        says(page, "notes", "Store unreachable")
        assert complaints == []
        page.close()


def test_bars_of_shares_can_be_told_apart_at_every_width(look):
    for width in WIDTHS:
        page = look("many", width=width)
        assert page.evaluate("document.querySelector('#arms .barline').offsetWidth") >= 60
