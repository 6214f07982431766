"""Model recipes and the export of their weights to ONNX."""
