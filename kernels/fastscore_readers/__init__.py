"""How bytes become columns: JSON, CSV and Python literals.

It imports only `fastscore_jit`, and nothing that computes metrics.
"""
