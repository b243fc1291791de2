"""A model that the hub's local cache holds is served without the hub, whoever may fetch which."""

import json
from pathlib import Path

import huggingface_hub.constants
import pytest

from domain.model import NO_TOKENIZER, ModelCard
from models.catalog import Catalog
from models.hub import Hub
from tests.models.small import SIZES, WIDTH, write_weights

COMMIT = "0" * 40


@pytest.fixture
def snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty snapshot of org/tiny in an otherwise empty cache."""
    repository = tmp_path / "models--org--tiny"
    snapshot = repository / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    return snapshot


def test_a_cached_model_has_a_card_and_a_directory(snapshot: Path) -> None:
    (snapshot / "config.json").write_text(json.dumps({"vocab_size": 32, "n_positions": 64, **SIZES}))
    (snapshot / "tokenizer.json").touch()
    write_weights(snapshot, vocab_size=32)
    assert Hub(allowed=()).card("org/tiny") == ModelCard(
        name="org/tiny", vocab_size=32, context_length=64, adapter_width=WIDTH
    )
    assert Catalog([]).directory("org/tiny") == snapshot


def test_a_cached_model_may_lack_the_tokenizer(snapshot: Path) -> None:
    (snapshot / "config.json").write_text(json.dumps({"vocab_size": 32, "n_positions": 64, **SIZES}))
    assert Hub(allowed=()).card("org/tiny").tokenizer_fault == NO_TOKENIZER


def test_a_cached_model_that_states_no_context_length_is_refused_with_the_reason(snapshot: Path) -> None:
    (snapshot / "config.json").write_text(json.dumps({"vocab_size": 32}))
    with pytest.raises(ValueError, match="max_position_embeddings"):
        Hub(allowed=()).card("org/tiny")
