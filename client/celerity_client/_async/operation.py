"""An accepted operation: it runs whether anybody waits for it or not."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from tqdm.auto import tqdm

from celerity_client._async.http import AsyncHttp
from celerity_client.errors import OperationFailedError
from celerity_client.results import Json

STATUS, CODE = "TRAINING_OPERATION_STATUS_", "TRAINING_OPERATION_ERROR_CODE_"
# The server may hold a GET for less.
WAIT_SECONDS = 20

T = TypeVar("T")


class AsyncOperation(Generic[T]):
    """`from_json` makes the result of the data that a COMPLETED operation answers."""

    def __init__(self, http: AsyncHttp, path: str, from_json: Callable[[Json], T]) -> None:
        self._http, self._from_json = http, from_json
        self.path = path

    @property
    def id(self) -> str:
        return self.path.rpartition("/")[2]

    async def result(self) -> T:
        """Waits for the end. Raises OperationFailedError, ApiError."""
        while True:
            operation = await self._http.call("GET", self.path, Prefer=f"wait={WAIT_SECONDS}")
            status = operation["status"].removeprefix(STATUS)
            if status == "COMPLETED":
                return self._from_json(operation["data"])
            if status == "FAILED":
                error = operation["error"]
                raise OperationFailedError(error["code"].removeprefix(CODE), error["message"])


async def async_results(
    operations: Sequence[AsyncOperation[T]], *, progress: bool = False, title: str = "results"
) -> list[T]:
    """What each answers, in their order. Raises as `result` for the first that failed."""
    found = []
    with tqdm(total=len(operations), desc=title, disable=not progress) as bar:
        for operation in operations:
            found.append(await operation.result())
            bar.update()
    return found
