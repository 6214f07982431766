"""The functions of ``import fastscore``: scoring, and reading logs as scoring does."""
