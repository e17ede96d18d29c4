#!/bin/bash
# where: LLaMA-Factory on two nodes
export NNODES=2 NODE_RANK=0 MASTER_ADDR=node1 MASTER_PORT=29500
FORCE_TORCHRUN=1 llamafactory-cli train sft.yaml
