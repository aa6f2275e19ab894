"""Hadoop's TeraSort tools, an independent reference for sorts."""
