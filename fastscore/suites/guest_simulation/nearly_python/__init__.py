"""Reading cells that are nearly Python, or nearly JSON: no parser takes them."""
