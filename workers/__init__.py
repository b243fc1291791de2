"""Celery tasks, the session runtime and (in engine/) the torch engine."""
