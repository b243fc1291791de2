"""The table of docs/models.md: what becomes of each family of causal language models, tried on tiny random ones.

`python -m tests.model_table` writes it again.
"""

import contextlib
import inspect
import io
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import CONFIG_MAPPING, AutoModelForCausalLM

from tests.tiny_families import OLDER, SETTINGS, SIZES, UNTRIED
from workers.engine.decoder.adapted_layers import within_a_layer
from workers.engine.decoder.llama import Llama
from workers.engine.loading.base_model import BaseModel

PAGE = Path(__file__).parents[1] / "docs" / "models.md"
BEGIN, END = "<!-- written by python -m tests.model_table -->", "<!-- end -->"
HEADER = "| model_type | runs in | adapted | not adapted |\n|---|---|---|---|\n"
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Row:
    family: str
    path: str
    adapted: str
    left: str

    def __str__(self) -> str:
        return f"| {self.family} | {self.path} | {self.adapted} | {self.left} |"


def families() -> list[str]:
    """All that transformers has, but for the older ones."""
    known = transformers.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    return sorted(set(known) - OLDER)


def make_family(family: str, directory: Path, **more: Any) -> Path:
    """A tiny model of that family with random weights, none of them 0 or 1 throughout."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(tiny_config(family, **more))
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim == 1 or not weight.any():
                weight.add_(torch.randn_like(weight) * 0.1)
    with contextlib.redirect_stderr(io.StringIO()):
        model.save_pretrained(directory)
    return directory


def tiny_config(family: str, **more: Any) -> Any:
    return _tiny(CONFIG_MAPPING[family], more)


def _tiny(cls: Any, more: dict[str, Any]) -> Any:
    special = SETTINGS.get(cls.model_type, {}) | more
    names = set(inspect.signature(cls.__init__).parameters)
    settings = {name: value for name, value in SIZES.items() if name in names}
    if "layer_types" in names and "layer_types" not in special:
        kinds = list(dict.fromkeys(getattr(cls(), "layer_types", None) or ()))
        if kinds:
            settings |= {"layer_types": (kinds * 2)[: max(2, len(kinds))], "num_hidden_layers": max(2, len(kinds))}
    # Of a multimodal model: its text's, its eyes' and ears'.
    parts = {name: getattr(cls(), name, None) for name in cls.sub_configs if name not in special}
    settings |= {name: _tiny(type(part), {}) for name, part in parts.items() if part is not None}
    return cls(**(settings | special))


def untried(family: str) -> Row:
    return Row(family, f"not tried: {UNTRIED[family]}", "", "")


def row_of(family: str, directory: Path) -> tuple[Row, BaseModel | None]:
    """What becomes of the family's model in `directory`, and that model where it is served."""
    try:
        base = BaseModel(directory, CPU, torch.float32)
    except ValueError as error:
        # Without where and how far, which differs between processors.
        reason = re.sub(r", from token \d+ of \d+ on|: off by .*", "", str(error))
        return Row(family, f"refused: {reason}", "", ""), None
    path = "lean decoder" if isinstance(base._stack, Llama) else "transformers' layers"
    return Row(family, path, *map(_listed, (base.adapted.linears, base.adapted.experts))), base


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(within_a_layer(names))


def written_rows() -> dict[str, str]:
    """The page's lines by family."""
    table = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    return {line.split(" | ")[0].removeprefix("| "): line for line in table.splitlines() if line.startswith("| ")}


def write() -> None:
    rows = []
    for family in families():
        if family in UNTRIED:
            rows.append(str(untried(family)))
            continue
        with tempfile.TemporaryDirectory() as folder:
            rows.append(str(row_of(family, make_family(family, Path(folder)))[0]))
            print(rows[-1], flush=True)
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{HEADER}{chr(10).join(rows)}\n\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    torch.set_num_threads(1)  # more of them wait for each other over models this small
    write()
