"""Engines: who does the tasks of a run. An engine sees task keys and receipts, never data."""
