"""Every kernel and suite in plain Python, written from the definitions: slow, independent."""
