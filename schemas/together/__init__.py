"""The wire of the second door: the dialect of the public API's released SDK, translated into the same plain structs."""
