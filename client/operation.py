"""An accepted operation: it runs whether anybody waits for it or not."""

from typing import Generic, TypeVar

import msgspec

from client.errors import OperationFailedError
from client.transport import Transport

STATUS, CODE = "TRAINING_OPERATION_STATUS_", "TRAINING_OPERATION_ERROR_CODE_"
# The server may hold a GET for less.
WAIT_SECONDS = 20

T = TypeVar("T", bound=msgspec.Struct)


class Operation(Generic[T]):
    def __init__(self, transport: Transport, path: str, into: type[T]) -> None:
        self._transport, self._into = transport, into
        self.path = path

    @property
    def id(self) -> str:
        return self.path.rpartition("/")[2]

    def result(self) -> T:
        """Waits for the end. Raises OperationFailedError, ApiError."""
        while True:
            operation = self._transport.call("GET", self.path, Prefer=f"wait={WAIT_SECONDS}")
            match operation["status"].removeprefix(STATUS):
                case "COMPLETED":
                    return msgspec.convert(operation["data"], self._into)
                case "FAILED":
                    error = operation["error"]
                    raise OperationFailedError(error["code"].removeprefix(CODE), error["message"])
