"""Where input and output are: local files and object storage."""
