"""CSV: records, wanted cells, texts."""
