"""What every step of the loop stands on."""
