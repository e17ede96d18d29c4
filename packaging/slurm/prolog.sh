#!/bin/sh
# Prolog of slurm.conf: no job starts on a node whose mounts do not work. A prolog that fails drains the node with
# "Prolog error"; drained first, it has the cause for a reason.
#
#   Prolog=/usr/local/sbin/sharefs-prolog    (a copy of this file)
#   PrologFlags=Alloc
#
# A node whose state could not be found out (exit code 2) gets its job.
line=$(sharefs status --node-health --deadline 10s)
[ $? -eq 1 ] || exit 0
node=${SLURMD_NODENAME:-$(hostname -s)}
case $(scontrol --oneliner show node "$node" | sed -n 's/.* State=\([^ ]*\).*/\1/p') in
*DRAIN*) ;;
*) scontrol update nodename="$node" state=drain reason="$line" ;;
esac
exit 1
