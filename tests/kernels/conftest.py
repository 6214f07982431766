"""Hypothesis profiles of the kernel tests: 2,000 examples each in CI, fewer elsewhere.

``FASTSCORE_EXAMPLES`` says how many instead: `make test-nightly` sets it.
"""

import os

import numba
from hypothesis import HealthCheck, settings

COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}

settings.register_profile("kernels-ci", max_examples=2_000, **COMMON)
settings.register_profile("kernels", max_examples=150, **COMMON)
settings.register_profile("kernels-brief", max_examples=20, **COMMON)
examples = os.environ.get("FASTSCORE_EXAMPLES")
if examples and not numba.config.DISABLE_JIT:
    settings.register_profile("kernels-asked", max_examples=int(examples), **COMMON)
    settings.load_profile("kernels-asked")
else:
    in_full = bool(os.environ.get("CI")) and not numba.config.DISABLE_JIT
    settings.load_profile("kernels-ci" if in_full else "kernels")


def pytest_configure(config):
    """Words wrap round by design; numpy warns of it where nothing is compiled."""
    if numba.config.DISABLE_JIT:
        config.addinivalue_line("filterwarnings", "ignore:overflow encountered:RuntimeWarning")
