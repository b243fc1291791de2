"""What tests and benchmarks share: request bodies, small random models."""
