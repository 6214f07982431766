"""JSON Lines and JSON documents: lines, wanted values, texts."""
