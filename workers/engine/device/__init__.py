"""What the machine has: memory, threads, and a container's limits on them."""
