"""A run: plan, staged tasks over shards, atomic commits, resume."""
