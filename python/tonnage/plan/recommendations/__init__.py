"""What to do besides renting the best candidate: measure an offer, leave out a slow node."""
