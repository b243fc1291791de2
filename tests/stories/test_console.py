"""The console in a real browser, over the real stack: a run is watched, looked into, and stopped."""

from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from safetensors.numpy import load_file

from stack.stack import Stack
from testing.bodies import sample_body, scored
from tests.browser import DESK, PHONE, Complaints, chromium, running_browser, width_beyond
from tests.stories.client import Session

TIMEOUT = 20_000
pytestmark = pytest.mark.skipif(chromium() is None, reason="no Chromium: install one, or name it in CHROMIUM")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    executable = chromium()
    assert executable
    with running_browser(executable) as browser:
        yield browser


@pytest.fixture
def page(browser: Browser, stack: Stack) -> Iterator[Page]:
    """A page that must have given the browser nothing to complain of."""
    context = browser.new_context(viewport=DESK, base_url=stack.url)  # type: ignore[arg-type]
    context.set_default_timeout(TIMEOUT)
    page = context.new_page()
    complaints = Complaints(page)
    yield page
    context.close()
    assert complaints.heard == []


@pytest.fixture(scope="module")
def run(http: httpx.Client) -> Session:
    """A session after one step."""
    session = Session(http)
    train(session)
    return session


def train(session: Session) -> str:
    """One step of GRPO; the path of its forward-backward."""
    sequence = session.sample([1, 2, 3], max_tokens=4, seed=1)[0]
    path = session.submit("forward-backward", {
        "samples": [scored([1, 2, 3], sequence, 0.5), scored([1, 2, 3], sequence, -1.5)],
        "loss": {"type": "LOSS_TYPE_GRPO"},
    })  # fmt: skip
    session.result(path)
    step = session.step(0.01)["step"]
    logged = session.http.post(f"{session.path}:log", json={"name": "reward", "step": step, "value": step / 4})
    assert logged.status_code == 200, logged.text
    return path


def console_path(session: Session) -> str:
    return f"/console/sessions/{session.path.rpartition('/')[2]}"


def chart(page: Page, title: str) -> Locator:
    return page.locator("figure").filter(has=page.get_by_text(title, exact=True))


def test_curves_move_while_a_run_goes_on(page: Page, run: Session) -> None:
    page.goto("/")
    page.get_by_role("link", name=run.path.rpartition("/")[2][:8]).click()
    reward, loss = chart(page, "Reward"), chart(page, "Loss")
    step = run.read()["step"]
    expect(reward).to_contain_text(f"{step / 4} at step {step}")
    expect(loss.locator("canvas")).to_be_visible()
    train(run)
    expect(reward).to_contain_text(f"{(step + 1) / 4} at step {step + 1}")
    expect(loss).to_contain_text(f"at step {step + 1}")
    expect(page.locator("#session dd").nth(3)).to_have_text(str(step + 1))


def test_a_curve_that_begins_later_takes_its_own_place(page: Page, http: httpx.Client) -> None:
    session = Session(http)
    session.train([scored([1, 2], session.sample([1, 2], max_tokens=2)[0], 1.0)])
    page.goto(console_path(session))
    expect(page.locator("figure").first).to_contain_text("Loss")
    for name in ("mine", "reward"):
        assert http.post(f"{session.path}:log", json={"name": name, "step": 1, "value": 0.5}).status_code == 200
    expect(page.locator("figure").first).to_contain_text("Reward")
    expect(page.locator("figure").last).to_contain_text("mine")


def test_a_tab_that_nobody_sees_asks_for_nothing(page: Page, run: Session) -> None:
    page.goto(console_path(run))
    expect(page.locator("figure").first).to_be_visible()
    page.evaluate(
        "Object.defineProperty(document, 'hidden', {value: true, configurable: true});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    page.wait_for_load_state("networkidle")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(3000)
    assert asked == []
    with page.expect_request("**/curves?*"):
        page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")


def test_tokens_of_a_sample_and_of_a_training_call_can_be_looked_into(page: Page, run: Session) -> None:
    sample = run.submit("sample", sample_body([1, 2, 3], 2, max_tokens=4, seed=1))
    run.result(sample)
    page.goto(f"{console_path(run)}/operations/{sample.rpartition('/')[2]}")
    expect(page.get_by_role("article")).to_have_count(2)
    page.get_by_text("As numbers").first.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("columnheader", name="logprob").first).to_be_visible()
    page.goto(f"{console_path(run)}/operations/{train(run).rpartition('/')[2]}")
    expect(page.get_by_role("article")).to_have_count(2)
    expect(page.locator("article .good-5").first).to_be_visible()
    expect(page.locator("article .bad-5").first).to_be_visible()
    expect(page.locator("article .masked").first).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_a_phone(page: Page, run: Session, scheme: str) -> None:
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    training = train(run).rpartition("/")[2]
    for path in ("/", console_path(run), f"{console_path(run)}/operations/{training}", f"{console_path(run)}/stop"):
        page.goto(path)
        page.wait_for_load_state("networkidle")
        assert width_beyond(page) == 0, path
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 28)"}[scheme]


def test_the_keyboard_alone_reaches_the_content_first(page: Page) -> None:
    page.goto("/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_an_adapter_is_saved_and_downloaded(page: Page, run: Session) -> None:
    page.goto(console_path(run))
    page.get_by_role("link", name="Save…").click()
    page.get_by_role("button", name="Save a checkpoint").click()
    page.locator("#operation a[href^='/console/checkpoints/']").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="adapter_model.safetensors").click()
    tensors = load_file(download.value.path())
    assert len(tensors) == 2 * 7 * 2, "A and B of seven projections in each of the two layers"


def test_stop_asks_and_then_stops(page: Page, http: httpx.Client) -> None:
    session = Session(http)
    page.goto(console_path(session))
    page.get_by_role("link", name="Stop…").click()
    page.get_by_role("button", name="Stop the session").click()
    expect(page.locator("#session")).to_contain_text("stopped")
    assert session.read()["status"] == "TRAINING_SESSION_STATUS_STOPPED"
    expect(page.get_by_role("link", name="Stop…")).to_have_count(0)
