"""Render a study of one machine."""
