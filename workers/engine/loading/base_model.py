"""A frozen causal language model from a Hugging Face directory, shared by the adapters on it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from workers.engine.backends.choice import backend_for
from workers.engine.decoder.adapted_layers import adapted_layers, text_decoder
from workers.engine.decoder.forward_pass import ForwardPass
from workers.engine.decoder.head import Head
from workers.engine.decoder.llama import Llama
from workers.engine.decoder.transformers_stack import TransformersStack
from workers.engine.decoder.windows import refuse_unknown_layers
from workers.engine.failures import invalid_input, refusing
from workers.engine.loading.check_passes import cached_passes, whole_pass
from workers.engine.loading.conformance import Reference
from workers.engine.loading.model_files import load_end_tokens, load_model, load_tokenizer


class BaseModel:
    """Loads and checks the model; runs its layers (without the head) with the adapters of a pass.

    Raises:
        ValueError: the directory holds no such model, or one whose results would not be those of transformers.
    """

    def __init__(
        self, directory: Path, device: torch.device, dtype: torch.dtype, check: Callable[[], None] = lambda: None
    ) -> None:
        """`check` is called between steps of loading, and raises to end it."""
        self.device, self.dtype = device, dtype
        self.backend = backend_for(device, dtype)
        check()
        model = load_model(directory, device, dtype)
        check()
        config, decoder = model.config.get_text_config(), text_decoder(model)
        refuse_unknown_layers(config)
        self.head = Head.of(model, self.backend)
        self.vocab_size = self.head.outputs
        self.tokenizer, self.tokenizer_fault = load_tokenizer(directory)
        self.end_tokens = load_end_tokens(directory, model.config, self.tokenizer)
        self.adapted = adapted_layers(model, decoder, config)
        is_lean = Llama.can_take(model)
        with _before_each_layer(decoder, check):
            with refusing("transformers itself cannot run it", directory):
                reference = Reference(model, decoder, config, is_lean)
            self._stack = (
                Llama(model, self.head, self.backend)
                if is_lean
                else TransformersStack(model, decoder, self.adapted, self.backend)
            )
            self.groups = self._stack.groups
            self.kv_bytes_per_token = self._check_passes(reference, directory)

    def check_tokens(self, tokens: np.ndarray, of: str) -> None:
        """Raises OperationFailedError for an id outside the vocabulary, which on CUDA would break the device for the
        process."""
        outside = (tokens < 0) | (tokens >= self.vocab_size)
        if outside.any():
            index = int(outside.argmax())
            raise invalid_input(
                f"Token {tokens[index]} at index {index} of {of} is outside the vocabulary of {self.vocab_size}."
            )

    def hidden(self, forward_pass: ForwardPass) -> Tensor:
        """Last hidden states [T, D]."""
        return self._stack(forward_pass)

    def logits(self, hidden_ND: Tensor) -> Tensor:
        """Raw logits [N, V] in the model's dtype, outside of autograd."""
        return self.head.product(hidden_ND)

    @torch.no_grad()
    def _check_passes(self, reference: Reference, directory: Path) -> int:
        """Returns the bytes of a cached token. Raises ValueError where our passes differ from those of transformers."""
        sequences = [sequence.tokens_T for sequence in reference.sequences]
        with refusing("its layers cannot be run on packed sequences", directory):
            whole = whole_pass(self.hidden, sequences, self.backend)
            cached, bytes_per_token = cached_passes(self.hidden, sequences, self.backend)
        reference.refuse_other_logits(self.logits)
        reference.refuse_unlike(whole, "In a pass over whole sequences")
        reference.refuse_unlike(cached, "From a cache of keys and values")
        return bytes_per_token


@contextmanager
def _before_each_layer(decoder: nn.Module, check: Callable[[], None]) -> Iterator[None]:
    layers = [layer for child in decoder.children() if isinstance(child, nn.ModuleList) for layer in child]
    handles = [layer.register_forward_pre_hook(lambda *_: check()) for layer in layers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
