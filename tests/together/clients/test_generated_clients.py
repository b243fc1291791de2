"""Each api's document lints clean, and the clients generated from it run a GRPO step against the live server."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from stack.stack import Stack

HERE = Path(__file__).parent
APIS = {"native": "/openapi.json", "together": "/together/openapi.json"}
TSC = ("--strict", "--module", "nodenext", "--target", "es2022", "--types", "node", "--skipLibCheck", "false")

needs_npm = pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed: no linter, no TypeScript")


def run(*command: str, cwd: Path, **environment: str) -> str:
    answer = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


@pytest.fixture(scope="module")
def documents(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documents")
    for api, path in APIS.items():
        (folder / f"{api}.json").write_bytes(httpx.get(stack.url + path).raise_for_status().content)
    return folder


@pytest.fixture(scope="module")
def npm(documents: Path) -> Path:
    """A folder with the pinned packages, the documents and the scripts."""
    for file in (HERE / "package.json", HERE / "package-lock.json", *HERE.glob("*.ts")):
        shutil.copy(file, documents)
    run("npm", "ci", "--no-audit", "--no-fund", cwd=documents)
    return documents


@needs_npm
@pytest.mark.parametrize("api", APIS)
def test_the_document_lints_clean(npm: Path, api: str) -> None:
    run("npx", "redocly", "lint", "--max-problems=5", f"{api}.json", cwd=npm, REDOCLY_TELEMETRY="off")


@needs_npm
@pytest.mark.parametrize("api", APIS)
def test_a_typescript_client_runs_a_grpo_step(stack: Stack, npm: Path, api: str) -> None:
    # A request may leave out what has a default.
    options = ("--default-non-nullable=false", "-o", f"{api}-api.d.ts")
    run("npx", "openapi-typescript", f"{api}.json", *options, cwd=npm)
    run("npx", "tsc", *TSC, f"{api}.ts", cwd=npm)
    assert run("node", f"{api}.js", stack.url, cwd=npm).strip() == "step 1"


@pytest.mark.parametrize("api", APIS)
def test_a_python_client_runs_a_grpo_step(stack: Stack, documents: Path, api: str) -> None:
    generator = str(Path(sys.executable).with_name("openapi-python-client"))
    output = documents / f"{api}_client"
    run(generator, "generate", "--path", f"{api}.json", "--output-path", str(output), "--meta", "none", cwd=documents)
    script = str(HERE / f"{api}_step.py")
    assert run(sys.executable, script, stack.url, cwd=documents, PYTHONPATH=str(documents)).strip() == "step 1"
