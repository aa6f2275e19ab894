"""Labs for the tests: whether one can be made here, and one whose nodes fail."""
