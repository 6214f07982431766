"""What ``import fastscore`` offers: scoring, and reading logs as scoring does."""
