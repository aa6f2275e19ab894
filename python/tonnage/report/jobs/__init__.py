"""Render jobs that other programs ran: applications of other engines, and observed commands."""
