"""Launch lines and scripts with and without sharefs, and what the programs in them receive."""
