"""Texts to vectors: the embedder, the store that keeps every vector, a shard's view of it."""
