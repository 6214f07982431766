"""Shared by kernels and readers: compilation, threads, validation, Arrow buffers and memory.

It imports neither of them, and computes nothing of their results.
"""
