#!/bin/sh
# A custom plugin of Kubernetes' node-problem-detector: exit code 0 well, 1 a problem, other unknown; it keeps 80 bytes
# of the output. It waits until nobody has the pipe open, so nothing may be left behind: sharefs leaves nothing.
exec sharefs status --node-health --deadline "${1:-4s}"
