"""Our own kernels for CPUs, in C++: built for each instruction level (build.py) and chosen at start (kernel.py)."""
