"""Tab in bash, zsh and fish."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import shell_complete

from cli.program import celerity
from stack.process import ROOT

VARIABLE = "_CELERITY_COMPLETE"


def completed(shell: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    """What the shell is told when Tab is pressed after the last word."""
    place = words[-1] if shell == "fish" else str(len(words) - 1)
    monkeypatch.setenv("COMP_WORDS", " ".join(words))
    monkeypatch.setenv("COMP_CWORD", place)
    assert shell_complete(celerity, {}, "celerity", VARIABLE, f"{shell}_complete") == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_commands_and_options_are_completed(
    shell: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shell_complete(celerity, {}, "celerity", VARIABLE, f"{shell}_source") == 0
    assert f"{VARIABLE}={shell}_complete" in capsys.readouterr().out
    commands = completed(shell, capsys, monkeypatch, "celerity", "che")
    assert "checkpoints" in commands and "sessions" not in commands
    options = completed(shell, capsys, monkeypatch, "celerity", "checkpoints", "save", "--k")
    assert "--kind" in options and "--key" in options


def test_bash_completes_what_is_typed(tmp_path: Path) -> None:
    """In a real bash, as README says."""
    program = tmp_path / "celerity"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m cli "$@"\n')
    program.chmod(0o755)
    typed = """
eval "$(_CELERITY_COMPLETE=bash_source celerity)"
complete -p celerity
COMP_WORDS=(celerity models ch) COMP_CWORD=2
_celerity_completion celerity ch models
echo "${COMPREPLY[@]}"
"""
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    answer = subprocess.run(["bash", "-c", typed], cwd=ROOT, env=environment, capture_output=True, text=True)
    registered, found = answer.stdout.splitlines()
    assert registered.endswith("-F _celerity_completion celerity")
    assert found == "check"
