"""The sizes of a small model, as a config.json states them."""

SIZES = {"num_hidden_layers": 2, "hidden_size": 8, "intermediate_size": 16, "num_attention_heads": 2}
# Two layers; of each, q, k, v and o take 8 + 8 and gate, up and down 8 + 16.
WIDTH = 2 * (4 * 16 + 3 * 24)
