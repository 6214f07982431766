"""Conversion of bytes to typed rows: blocks, decompression, formats, columns."""
