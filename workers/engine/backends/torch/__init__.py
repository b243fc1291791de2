"""The model's operations by torch's own, on any device: what other backends are tested against."""
