"""Text that comes from others' files, for a log's line, a terminal and an answer."""


def printable(text: str) -> str:
    """With escapes for line ends, control characters, and what is no text at all."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
