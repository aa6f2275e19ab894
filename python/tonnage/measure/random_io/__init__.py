"""Single blocks of a file at random offsets, by queue depth."""
