"""Hosts with one share, Python programs on them, and the guard."""
