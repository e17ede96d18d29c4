"""Real launchers, and what sharefs says of the same command lines."""
