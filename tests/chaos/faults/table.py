"""Every kind of fault, and how often it is drawn beside the others."""

import random
from collections.abc import Callable

from stack.stack import Stack
from tests.chaos.faults import messages, processes

Fault = Callable[[Stack, random.Random], None]

WEIGHTS: dict[Fault, int] = {
    processes.kill_worker: 8,
    processes.kill_api: 3,
    processes.kill_api_process: 3,
    processes.kill_valkey: 3,
    processes.stall_worker: 3,
    messages.cut_connections: 3,
    messages.lose_messages: 3,
    messages.repeat_messages: 2,
}
