"""Sample requests: the sequences that decode together, and prompts that are scored."""
