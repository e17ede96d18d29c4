"""The fault matrix: the rows of faults.servers."""

from faults import servers
from faults.proof import proofs_of

bench, test_fault, test_page = proofs_of(servers)
