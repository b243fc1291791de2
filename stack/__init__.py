"""The local stack: Valkey, workers and the API as processes of one host, under one supervisor.

Knows how to start the rooms, and of what is in them only which files are to be kept from others.
"""
