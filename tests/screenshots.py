"""`make screenshots`: pictures of the console for the documentation, of a short run of the example."""

import subprocess
import sys
import tempfile
from pathlib import Path

import httpx
from playwright.sync_api import Page, expect

from models import bundled
from stack.process import ROOT
from stack.running import running_stack
from tests.browser import DESK, PHONE, chromium, running_browser

IMAGES = ROOT / "docs" / "images"
RUN = {"steps": 12, "questions": 6, "samples": 6, "held-out": 2}


def main() -> int:
    executable = chromium()
    if executable is None:
        print("there is no Chromium: install one, or name it in CHROMIUM", file=sys.stderr)
        return 2
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, running_stack(Path(folder)) as stack:
        _train(stack.url, Path(folder))
        with running_browser(executable) as browser:
            page = browser.new_page(viewport=DESK, base_url=stack.url)  # type: ignore[arg-type]
            _shoot(page, httpx.Client(base_url=stack.url))
    return 0


def _train(url: str, folder: Path) -> None:
    options = [part for name, value in RUN.items() for part in (f"--{name}", str(value))]
    tokenizer = str(bundled.DIRECTORY / bundled.NAME)
    command = [sys.executable, "-m", "examples.grpo_arithmetic", "--url", url, "--output", str(folder / "run")]
    # Whether so short a run has learned something is no matter here.
    subprocess.run([*command, "--tokenizer", tokenizer, *options], cwd=ROOT, check=False)


def _shoot(page: Page, http: httpx.Client) -> None:
    (session,) = http.get("/v1/rl/training-sessions").json()
    session_id = session["session_id"]
    operations = http.get(f"/v1/rl/training-sessions/{session_id}/operations?limit=30").json()
    newest = {operation["kind"]: operation["operation_id"] for operation in reversed(operations)}
    training = newest["forward-backward"]
    sample = next(each["operation_id"] for each in operations[10:] if each["kind"] == "sample")
    path = f"/console/sessions/{session_id}"
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        _picture(page, "/", f"overview-{scheme}")
        _picture(page, path, f"session-{scheme}", awaits="figure canvas")
        _picture(page, f"{path}/operations/{sample}", f"sample-{scheme}")
        _picture(page, f"{path}/operations/{training}", f"training-{scheme}")
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    _picture(page, path, "phone", awaits="figure canvas")


def _picture(page: Page, path: str, name: str, awaits: str = "h1") -> None:
    page.goto(path)
    expect(page.locator(awaits).first).to_be_visible()
    page.wait_for_load_state("networkidle")
    page.screenshot(path=IMAGES / f"{name}.png")


if __name__ == "__main__":
    sys.exit(main())
