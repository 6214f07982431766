"""The analysis of a run of preference_shift: ablations, sensitivity, validity, figures, one page.

Everything is computed from the committed tables; nothing is scored again. The same run, judge's
file, number of samples and seed give the same files, byte for byte.
"""

from fastscore.results.analyse import Analysis, analyse

__all__ = ["Analysis", "analyse"]
