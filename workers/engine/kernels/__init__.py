"""Our own kernels for CPUs, in C++: compiled on this machine for its processor when they are first needed."""
