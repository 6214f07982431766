"""Hypothesis profiles of the kernel tests: 2,000 examples each in CI, fewer elsewhere."""

import os

import numba
from hypothesis import HealthCheck, settings

COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}

settings.register_profile("kernels-ci", max_examples=2_000, **COMMON)
settings.register_profile("kernels", max_examples=150, **COMMON)
in_full = bool(os.environ.get("CI")) and not numba.config.DISABLE_JIT
settings.load_profile("kernels-ci" if in_full else "kernels")
