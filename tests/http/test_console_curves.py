"""What a browser draws of the strangest numbers that may be logged."""

import pytest
from playwright.sync_api import expect

from tests.browser import Complaints, chromium, running_browser
from tests.http.conftest import Api

STRANGE = {
    "one": [0.5],
    "constant": [0.0, 0.0],
    "hardly apart": [0.99999994, 1.0],
    "next to nothing": [1e-40, 0.0],
    "nearly zero": [3e-17, 5e-17],
    "huge": [3e38, -3e38],
    "<b>bold</b>": [1.0, 2.0],
    "__proto__": [1.0, 2.0],
}


@pytest.mark.skipif(chromium() is None, reason="no Chromium: install one, or name it in CHROMIUM")
def test_every_finite_number_is_drawn_and_no_name_is_run(api: Api, url: str) -> None:
    session = api.session()
    for name, values in STRANGE.items():
        for step, value in enumerate(values):
            logged = api.client.post(f"{session}:log", json={"name": name, "step": step * 2**30, "value": value})
            assert logged.status_code == 200, logged.text
    executable = chromium()
    assert executable
    with running_browser(executable) as browser:
        page = browser.new_page()
        complaints = Complaints(page)
        page.goto(f"{url}/console/sessions/{session.rpartition('/')[2]}")
        expect(page.locator("figure canvas")).to_have_count(len(STRANGE))
        for name in STRANGE:
            expect(page.locator("figcaption").get_by_text(name, exact=True)).to_be_visible()
        assert complaints.heard == []
