"""What a worker announces of a base model, known without its weights."""

from pathlib import Path
from typing import Any

import torch

from domain.model import Adaptation, Described
from workers.engine.decoder.adapted_layers import adapted_layers, text_decoder, within_a_layer
from workers.engine.decoder.windows import refuse_unknown_layers
from workers.engine.failures import is_out_of_memory, refusing
from workers.engine.loading.model_files import empty_model, load_config


def describe(directory: Path) -> Described:
    """Of the directory's language model: its configuration's fields with the defaults of its class, also under the
    names that other families have for one, and what of it is adapted.

    Raises:
        ValueError: transformers knows no such model, or an adapter on it would leave out part of a layer.
        MemoryError: it has no memory to make the model without its weights.
    """
    try:
        return _described(directory)
    except RuntimeError as error:
        # As torch says it on a CPU.
        if is_out_of_memory(error):
            raise MemoryError from error
        raise


def _described(directory: Path) -> Described:
    config = load_config(directory)
    with refusing("config.json cannot be used", directory):
        text = config.get_text_config()
        fields = text.to_dict() | {name: getattr(text, name, None) for name in text.attribute_map}
    refuse_unknown_layers(text)
    return Described(fields, _adaptation(empty_model(directory, config, torch.float32)))


def _adaptation(model: Any) -> Adaptation:
    layers = adapted_layers(model, text_decoder(model), model.config.get_text_config())
    shapes = [model.get_submodule(name).weight.shape for name in layers.linears]
    return Adaptation(
        modules=within_a_layer(layers.linears),
        left_out=within_a_layer(layers.experts),
        width=sum(inputs + outputs for outputs, inputs in shapes),
    )
