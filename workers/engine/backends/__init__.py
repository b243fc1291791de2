"""Who computes a model's operations: torch's own, or our kernels for CPUs."""
