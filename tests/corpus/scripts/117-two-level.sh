#!/bin/bash
# where: a script that names a script that loses it
cat > inner.sh <<'INNER'
#!/bin/bash
env -u PYTHONPATH python train.py --cache_dir /share/hf
INNER
chmod +x inner.sh
./inner.sh
