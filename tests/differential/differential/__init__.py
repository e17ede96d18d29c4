"""`sharefs export check` beside the real exportfs: one host for both, what each makes of the same files, and random
files."""
