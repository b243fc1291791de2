"""What can go wrong, from a client's side."""


class ApiError(Exception):
    """The server refused a request; `status` is that of HTTP, 0 when there was no answer at all."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}" if status else message)
        self.status = status
        self.message = message


class OperationFailedError(Exception):
    """An operation ended FAILED; `code` is the server's, without its prefix."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
