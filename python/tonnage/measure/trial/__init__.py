"""What all measurements share: trials, repetitions, resumable sessions, the environment."""
