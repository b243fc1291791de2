"""Tokenizers of every kind that models come with, each with a handful of tokens beside its bytes."""

from collections.abc import Iterable

from tokenizers import Tokenizer, decoders, models
from tokenizers.pre_tokenizers import ByteLevel
from transformers import PreTrainedTokenizerFast

SPECIALS = ["<s>", "</s>"]
PIECES = ["▁", "▁hello", "▁world", "hello", "world", "lo", "s", "▁s", ".", "▁é", "→", "END"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
# Tokens that begin and end within characters, as byte-level merges make them.
MERGED = [b" world", b"hello", b"\x86\x92\xe2", b"\x86\x92", b"\xe2\x86", b"\xf0\x9f", b"\x98\x80\xf0", b"END", b"a b"]
WORDS = ["[UNK]", "hello", "world", "##s", "##ing", ".", "do", "not", "n", "'", "t", "é", "END", "##"]
SUFFIXED = ["hello</w>", "world</w>", "</w>", "a", "b</w>", "é</w>", ".</w>"]


def small_tokenizers() -> dict[str, PreTrainedTokenizerFast]:
    fallback = decoders.ByteFallback()
    llama_2 = decoders.Sequence(
        [decoders.Replace("▁", " "), fallback, decoders.Fuse(), decoders.Strip(" ", 1, 0)],
    )
    kinds = {"byte level": _byte_level(), "llama 2": _bpe([*BYTES, *PIECES], llama_2)}
    for scheme in ("always", "never", "first"):
        metaspace = decoders.Metaspace(prepend_scheme=scheme)
        kinds[f"metaspace {scheme}"] = _bpe(PIECES, metaspace)
        kinds[f"byte fallback {scheme}"] = _bpe([*BYTES, *PIECES], decoders.Sequence([fallback, metaspace]))
    for cleanup in (True, False):
        word_piece = Tokenizer(models.WordPiece(vocab=_numbered(WORDS), unk_token="[UNK]"))
        word_piece.decoder = decoders.WordPiece(cleanup=cleanup)
        kinds[f"word piece {cleanup}"] = word_piece
    kinds["word ends"] = _bpe(SUFFIXED, decoders.BPEDecoder("</w>"))
    return {name: PreTrainedTokenizerFast(tokenizer_object=kind) for name, kind in kinds.items()}


def _bpe(pieces: Iterable[str], decoder: decoders.Decoder) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(vocab=_numbered(pieces), merges=[]))
    tokenizer.decoder = decoder
    tokenizer.add_special_tokens(SPECIALS)
    return tokenizer


def _byte_level() -> Tokenizer:
    """A byte's token is the byte."""
    shown = byte_characters()
    merged = ["".join(shown[byte] for byte in token) for token in MERGED]
    return _bpe([*shown, *merged], decoders.ByteLevel())


def byte_characters() -> list[str]:
    """What byte-level vocabularies write for each byte: itself where it can be seen, else the next free character."""
    alphabet = set(ByteLevel.alphabet())
    free = iter(sorted(character for character in alphabet if ord(character) > 255))
    return [chr(byte) if chr(byte) in alphabet else next(free) for byte in range(256)]


def _numbered(pieces: Iterable[str]) -> dict[str, int]:
    return {piece: number for number, piece in enumerate(pieces)}
