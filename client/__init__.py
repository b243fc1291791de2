"""A client of the API: submit operations, wait for their results, retry without doing anything twice.

It imports nothing of the server, so it may be copied to where the loop runs; httpx2 and msgspec are all it needs,
and tqdm for client/progress.py.
"""

from client.client import Client
from client.errors import ApiError, OperationFailedError
from client.operation import Operation
from client.session import Session

__all__ = ["ApiError", "Client", "Operation", "OperationFailedError", "Session"]
