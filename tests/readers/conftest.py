"""Readers are tested where nothing is compiled, too."""

import numba


def pytest_configure(config):
    """Words wrap round by design; numpy warns of it where nothing is compiled."""
    if numba.config.DISABLE_JIT:
        config.addinivalue_line("filterwarnings", "ignore:overflow encountered:RuntimeWarning")
