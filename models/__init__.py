"""Base models by name: what may be served, and where its files are. Loading them is the engine's work."""
