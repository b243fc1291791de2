"""What is done to a stack."""

from stack.stack import Stack


def kill(stack: Stack, name: str) -> None:
    stack.processes[name].kill()


def restart(stack: Stack, name: str) -> None:
    stack.run(stack.processes[name].service)
    stack.wait_ready()
