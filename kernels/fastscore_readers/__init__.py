"""Parsers: JSON, CSV and Python literals become columns.

It imports only `fastscore_jit`, and nothing that computes metrics.
"""
