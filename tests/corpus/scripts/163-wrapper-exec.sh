#!/bin/bash
# where: jobs of sites and frameworks of 2025
WRAPPER=./wrap.sh
cat > $WRAPPER <<'EOF'
#!/bin/bash
unset PYTHONPATH PYTHONHOME
exec "$@"
EOF
chmod +x $WRAPPER
srun $WRAPPER python train.py
