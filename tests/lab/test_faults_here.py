"""The fault matrix: the rows of faults.here."""

from faults import here
from faults.proof import proofs_of

bench, test_fault, test_page = proofs_of(here)
