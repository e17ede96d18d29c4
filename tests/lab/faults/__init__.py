"""The fault matrix: what is broken, what sharefs then does and says, and that nothing is lost or left. See bench.py."""
