"""LoRA adapters as data: weights, gradients, optimizer state, copies and files of them."""
