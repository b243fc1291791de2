"""The HTTP server: one thread reads and writes all connections, others run the application on whole requests.

See docs/decisions/0039-connections-cost-no-thread.md.
"""
