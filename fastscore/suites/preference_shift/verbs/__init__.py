"""Verbs that the suite adds to the command line, one click command a module."""
