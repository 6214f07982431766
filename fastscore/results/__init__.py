"""Reading committed runs: tables, summaries, and how they are shown."""
