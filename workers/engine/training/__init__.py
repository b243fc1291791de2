"""Forward-backward calls and optim-steps."""
