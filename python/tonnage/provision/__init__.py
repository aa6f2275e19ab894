"""Get machines: rent them (aws), describe them for others (export), or emulate them (lab)."""
