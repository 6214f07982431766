"""One self-contained page about one run or several side by side."""
