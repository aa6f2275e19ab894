"""Plans of operations, and plans of past runs, on the terminal."""
