"""Numba kernels over Arrow buffers."""
