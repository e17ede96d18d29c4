#!/bin/bash
# where: a wrapper that binds each rank
cat > bind.sh <<'B'
#!/bin/bash
exec numactl --cpunodebind=$((${LOCAL_RANK:-0} / 4)) "$@"
B
chmod +x bind.sh
torchrun --nproc_per_node 2 --no_python ./bind.sh python train.py --cache_dir /share/hf
