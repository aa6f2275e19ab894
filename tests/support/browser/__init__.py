"""Chromium, plan pages in it, and the lines of their scripts that ran."""
