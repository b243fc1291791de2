"""The client of Celerity's API: submit operations, wait for their results, retry without doing anything twice.

`Client` blocks, `AsyncClient` is awaited; both answer with the same results and raise the same errors.
"""

from celerity_client._async.client import AsyncClient
from celerity_client._async.operation import AsyncOperation, async_results
from celerity_client._async.session import AsyncSession
from celerity_client._sync.client import Client
from celerity_client._sync.operation import Operation, results
from celerity_client._sync.session import Session
from celerity_client.errors import ApiError, OperationFailedError
from celerity_client.training_data import example, grpo_example

__all__ = [
    "ApiError",
    "AsyncClient",
    "AsyncOperation",
    "AsyncSession",
    "Client",
    "Operation",
    "OperationFailedError",
    "Session",
    "async_results",
    "example",
    "grpo_example",
    "results",
]
