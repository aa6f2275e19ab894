"""What ``tonnage import`` reads, by kind of file."""
