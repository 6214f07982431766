"""From bytes to typed rows: blocks, decompression, formats, columns."""
