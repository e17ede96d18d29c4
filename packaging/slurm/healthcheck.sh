#!/bin/sh
# HealthCheckProgram of slurm.conf: drains this node while a mount of sharefs.yaml does not work, and takes it back when
# all do. Only a drain of its own is taken back, and a reason that somebody else gave is never written over.
#
#   HealthCheckProgram=/usr/local/sbin/sharefs-healthcheck    (a copy of this file)
#   HealthCheckInterval=60
#   HealthCheckNodeState=ANY
#
# Slurm reads neither the exit code nor the output, and starts jobs all the same: what counts is what scontrol does.
node=${SLURMD_NODENAME:-$(hostname -s)}
line=$(sharefs status --node-health --deadline 10s)
code=$?
# "drain*", "idle+drain", "mixed": and the reason, on a line of its own (sinfo pads and cuts otherwise)
state=$(scontrol --oneliner show node "$node" | sed -n 's/.* State=\([^ ]*\).*/\1/p')
reason=$(scontrol show node "$node" | sed -n 's/^ *Reason=\(.*\)/\1/p')
case $code in
0)
    case $reason in sharefs:*) scontrol update nodename="$node" state=resume ;; esac
    ;;
1)
    case $state in
    *DRAIN* | *DOWN* | *FAIL*) ;; # by whomever; its reason stays
    *) scontrol update nodename="$node" state=drain reason="$line" ;;
    esac
    ;;
esac # 2: it could not be found out; a node is not drained for that
exit 0
