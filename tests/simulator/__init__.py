"""The store's scripts and the Python around them in one process, with simulated time, faults, and an order by seed."""
