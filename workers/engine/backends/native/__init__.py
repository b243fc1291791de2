"""The model's operations by our kernels for CPUs."""
