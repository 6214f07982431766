"""Hypothesis profile of the kernel tests: fewer examples where nothing is compiled."""

import numba
from hypothesis import HealthCheck, settings

settings.register_profile(
    "kernels",
    max_examples=200 if numba.config.DISABLE_JIT else 2_000,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("kernels")
