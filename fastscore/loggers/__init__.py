"""Runs in the places where people keep results: one module a service, with one function."""

from fastscore.loggers.values import numbers_of, options_of

__all__ = ["numbers_of", "options_of"]
