"""Making conversations of preference_shift: simulated users, recommenders, experiments.

Nothing that scores imports this package. Without a chat model it uses no network.
"""
