"""Python literals that stand in cells of text."""
