"""Shared by kernels and readers: compilation, threads, validation, Arrow buffers and memory.

It imports neither of them, and computes nothing of their results. Each module imports only those
before it:

- `system`, `arrays`, `validation`: differences between operating systems, checks of arrays
- `declaring`, `objects`: what a kernel is, and its library on disk for a level of processors
- `llvm`, `bits`, `memory`, `byte_blocks`: instructions that kernels call
- `threads`: chunks of rows on threads, which can be stopped
- `building`: machine code by Numba, in processes of their own
- `compiling`: a library is loaded, or compiled first, when it is called
- `arrow`: columns of strings as kernels read them
"""
