"""The published metric systems, one package each."""
