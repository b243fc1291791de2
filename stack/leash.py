"""`python stack/leash.py SIGNAL PARENT COMMAND...` becomes COMMAND, which gets SIGNAL when its parent dies.

So nothing is left behind even when the supervisor is killed with -9 and can stop nothing itself.
Linux only (prctl(2), PR_SET_PDEATHSIG); elsewhere the command runs unleashed. The kernel means
the thread that started the command, so a stack belongs to a thread that outlives it.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    signal, parent, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    if sys.platform == "linux":
        _signal_at_parents_death(signal)
        if os.getppid() != parent:  # it died before the kernel was told
            sys.exit(1)
    os.execvp(command[0], command)


def _signal_at_parents_death(signal: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")


if __name__ == "__main__":
    main()
