"""What the tests lean on: room on a disk, the command under test, Hadoop, and a browser."""
