"""The fault matrix: the rows of faults.version3."""

from faults import version3
from faults.proof import proofs_of

bench, test_fault, test_page = proofs_of(version3)
