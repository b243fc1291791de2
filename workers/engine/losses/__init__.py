"""Losses as pure functions of per-token arrays, fp32 whatever the model's dtype."""
