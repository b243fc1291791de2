"""What a worker announces of a base model, read without its weights."""

from pathlib import Path
from typing import Any

import torch

from domain.model import Adaptation, Described
from workers.engine.decoder.adapted_layers import adapted_layers, text_decoder, within_a_layer
from workers.engine.decoder.windows import refuse_unknown_layers
from workers.engine.failures import is_out_of_memory, refusing
from workers.engine.loading.model_files import empty_model, load_config


def describe(directory: Path) -> Described:
    """The fields of the language model's configuration, with the defaults of its class and under all names that
    families have for them, and which layers an adapter changes.

    Raises:
        ValueError: transformers knows no such model, or an adapter on it would leave out part of a layer.
        MemoryError: there is no memory to create the model without its weights.
    """
    try:
        return _described(directory)
    except RuntimeError as error:
        # Torch's exception for it on a CPU.
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
