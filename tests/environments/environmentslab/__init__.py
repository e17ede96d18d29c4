"""Conda environments made from packages of our own, and what is asked of them."""
