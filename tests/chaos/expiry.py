"""What is older than it is kept is gone whole, and answered for as documented; the rest is there as it was told."""

from tests.chaos.api import Api
from tests.chaos.retrying_client import RetryingClient
from tests.chaos.story import SessionRun


def wrong_answers(client: RetryingClient, api: Api, run: SessionRun, results_kept: int) -> tuple[list[str], int]:
    """Lines for what is wrong, and how many operations have expired. Of a session that was stopped all have, of
    another one all but the newest results."""
    answers = {number: _answer(client, api, run, number) for number in range(len(run.ids))}
    expired = [number for number, answer in answers.items() if answer == "expired"]
    lines = [
        f"{run.name} operation {number}: {answer}"
        for number, answer in answers.items()
        if answer not in ("expired", "same")
    ]
    due = len(run.ids) if run.is_stopped else max(0, len(run.ids) - results_kept)
    if len(expired) != due:
        lines.append(f"{run.name}: {len(expired)} of {len(run.ids)} operations have expired, {due} should have")
    return lines, len(expired)


def _answer(client: RetryingClient, api: Api, run: SessionRun, number: int) -> str:
    """The words "expired" or "same", or else what was answered."""
    operation, id = run.accepted[number], run.ids[number]
    response = client.try_get(api.operation_path(run.session_id, operation.kind, id))
    if response.status_code == 404:
        message = response.json()["message"]
        gone = "no such training session" if run.is_stopped else "than results are kept"
        return "expired" if gone in message else message
    if response.status_code != 200:
        return f"{response.status_code} {response.text[:200]}"
    return "same" if api.end(run.session_id, operation, id) == run.ends[number] else response.text[:300]
