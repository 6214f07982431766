"""What people set: options and their files, and the optional packages that they install."""
