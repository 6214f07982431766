"""Drop-ins for published scripts: their names, files and numbers, on this engine."""
