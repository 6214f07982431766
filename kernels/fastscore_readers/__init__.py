"""How bytes become columns: JSON, CSV and Python literals.

It stands on `fastscore_machine` alone and knows nothing of what is computed.
"""
