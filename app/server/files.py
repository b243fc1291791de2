"""How many files, and so connections, a process may have open."""

import resource

MOST_FILES = 16_384
FILES_PER_THREAD = 2
"""A connection to Redis, and a file that it reads or writes."""
OTHER_FILES = 64


def raise_file_limit() -> None:
    """Takes as many as the system lets a process have for the asking: shells and service managers give 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def connections_for(threads: int) -> int:
    """How many connections leave enough files for the threads."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = MOST_FILES if soft == resource.RLIM_INFINITY else min(soft, MOST_FILES)
    return max(files - FILES_PER_THREAD * threads - OTHER_FILES, OTHER_FILES)
