"""The local stack: Valkey, workers and the API as processes of one host, under one supervisor.

Knows how to start the rooms, never what is in them.
"""
