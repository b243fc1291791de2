"""The plain requests, results and records that every room speaks.

A leaf: it imports numpy and msgspec and nothing of ours, so that the wire (schemas/), the store
and the engine can share one vocabulary without knowing of each other.
"""
