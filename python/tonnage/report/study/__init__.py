"""The page of a study on one machine."""
