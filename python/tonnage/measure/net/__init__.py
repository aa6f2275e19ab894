"""Measure the network of a shuffle alone: on one machine (`local`) or between nodes (`cluster`)."""
