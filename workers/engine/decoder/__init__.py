"""A model's layers over packed rows, with adapters inside."""
