"""What kernels and readers stand on: compiling, threads, validation, Arrow buffers and memory.

It knows neither of them, and nothing of what is computed.
"""
