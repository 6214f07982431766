"""Suite ``preference_shift``: how recommenders follow a user's shifting preferences."""
