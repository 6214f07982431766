"""``python -m fastscore`` is the same as ``fastscore``."""

from fastscore.cli import main

main()
