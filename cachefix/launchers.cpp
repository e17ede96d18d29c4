// The table of launchers. A new launcher is a row here and a file in tests/golden/cachefix, and no more.
#include "base/path.hpp"
#include "cachefix/launcher.hpp"

#include <algorithm>
#include <array>

namespace sharefs::cachefix {
namespace {

using enum Means;

constexpr Meaning k_env[] = {{"--chdir", directory},         {"--unset", unset},      {"--ignore-environment", clear},
                             {"--split-string", split_text}, {"--help", information}, {"--version", information}};
constexpr Meaning k_help[] = {{"--help", information}, {"--version", information}};
constexpr Meaning k_python[] = {
    {"-m", run_module}, {"-c", run_text}, {"--help", information}, {"--version", information}};
constexpr Meaning k_torchrun[] = {{"--module", module}, {"--no-python", no_python}, {"--help", information}};
constexpr Meaning k_deepspeed[] = {
    {"--module", module}, {"--no_python", no_python}, {"--hostfile", hostfile}, {"--help", information}};
constexpr Meaning k_accelerate[] = {
    {"--module", module}, {"--no_python", no_python}, {"--deepspeed_hostfile", hostfile}, {"--help", information}};
constexpr Meaning k_conda[] = {{"--cwd", directory}, {"--help", information}};
constexpr Meaning k_mamba[] = {
    {"--cwd", directory}, {"--env", assign}, {"--clean-env", clear}, {"--help", information}};
constexpr Meaning k_srun[] = {{"--container-image", container}, {"--chdir", directory},   {"--export", assign_list},
                              {"--help", information},          {"--usage", information}, {"--version", information}};
constexpr Meaning k_sbatch[] = {{"--container-image", container}, {"--chdir", directory},  {"--export", assign_list},
                                {"--wrap", command_text},         {"--help", information}, {"--usage", information},
                                {"--version", information}};
constexpr Meaning k_mpi[] = {{"-wdir", directory},   {"-x", assign},           {"-genv", assign_pair},
                             {"-env", assign_pair},  {"-host", remote},        {"-hostfile", hostfile},
                             {"-help", information}, {"-version", information}};
constexpr Meaning k_horovod[] = {
    {"--hosts", remote}, {"--hostfile", hostfile}, {"--help", information}, {"--version", information}};
constexpr Meaning k_uv[] = {{"--directory", directory}, {"--module", module}, {"--help", information}};
constexpr Meaning k_shell[] = {{"-c", command_text}, {"--help", information}, {"--version", information}};
constexpr Meaning k_image[] = {{"--help", information}};

// `-W` and `-I` and many more differ between srun and sbatch; what both have stands here.
#define SLURM_VALUES                                                                                                   \
  "-A/--account --acctg-freq -b/--begin --bb --bbf -c/--cpus-per-task -C/--constraint --clusters/-M "                  \
  "--cluster-constraint --comment --container --container-id -d/--dependency -D/--chdir --cores-per-socket "           \
  "--core-spec/-S "                                                                                                    \
  "--cpu-freq --cpus-per-gpu -B/--extra-node-info --deadline --delay-boot -m/--distribution -e/--error -x/--exclude "  \
  "--export --extra -F/--nodefile --gid --gpu-bind --gpu-freq -G/--gpus --gpus-per-node --gpus-per-socket "            \
  "--gpus-per-task --gres --gres-flags --hint -i/--input -J/--job-name -L/--licenses --mail-type --mail-user "         \
  "--mcs-label --mem --mem-bind --mem-per-cpu --mem-per-gpu --mincpus --network -N/--nodes -w/--nodelist -n/--ntasks " \
  "--ntasks-per-core --ntasks-per-gpu --ntasks-per-node --ntasks-per-socket --open-mode -o/--output -p/--partition "   \
  "--power --prefer --priority --profile -q/--qos --reservation --segment --signal --sockets-per-node --stepmgr "      \
  "--switches --thread-spec -t/--time --threads-per-core --time-min --tmp --tres-bind --tres-per-task --uid --wckey "

constexpr Launcher k_launchers[] = {
    // ---- prefixes ----
    {.name = "env",
     .programs = "env",
     .syntax = Syntax::getopt,
     .tail = Tail::command,
     .flags = "-i/--ignore-environment -0/--null -v/--debug --list-signal-handling --help --version",
     .values = "-u/--unset -C/--chdir -S/--split-string -a/--argv0",
     .attached = "--block-signal --default-signal --ignore-signal",
     .meanings = k_env,
     .assignments = true,
     .source = "env(1), coreutils 9.1"},
    {.name = "nohup",
     .programs = "nohup",
     .syntax = Syntax::getopt,
     .tail = Tail::command,
     .flags = "--help --version",
     .meanings = k_help,
     .source = "nohup(1), coreutils 9.1"},
    {.name = "nice",
     .programs = "nice",
     .syntax = Syntax::getopt,
     .tail = Tail::command,
     .flags = "--help --version",
     .values = "-n/--adjustment",
     .meanings = k_help,
     .source = "nice(1), coreutils 9.1"},
    {.name = "time",
     .programs = "time",
     .syntax = Syntax::getopt,
     .tail = Tail::command,
     .flags = "-p/--portability -v/--verbose -a/--append -q/--quiet -V/--version -h/--help",
     .values = "-f/--format -o/--output",
     .meanings = k_help,
     .source = "time(1), GNU time 1.9"},
    {.name = "timeout",
     .programs = "timeout",
     .syntax = Syntax::getopt,
     .tail = Tail::command,
     .flags = "--preserve-status --foreground -v/--verbose --help --version",
     .values = "-k/--kill-after -s/--signal",
     .meanings = k_help,
     .operands = 1,
     .source = "timeout(1), coreutils 9.1"},
    {.name = "stdbuf",
     .programs = "stdbuf",
     .syntax = Syntax::getopt,
     .tail = Tail::command,
     .flags = "--help --version",
     .values = "-i/--input -o/--output -e/--error",
     .meanings = k_help,
     .source = "stdbuf(1), coreutils 9.1"},
    {.name = "taskset",
     .programs = "taskset",
     .syntax = Syntax::getopt,
     .tail = Tail::command,
     .flags = "-c/--cpu-list -h/--help -V/--version",
     .meanings = k_help,
     .operands = 1,
     .source = "taskset(1), util-linux 2.38; -p and -a act on a running process and are not known here"},
    {.name = "numactl",
     .programs = "numactl",
     .syntax = Syntax::getopt,
     .tail = Tail::command,
     .flags = "-a/--all -l/--localalloc -b/--balancing -s/--show -H/--hardware",
     .values = "-i/--interleave -w/--weighted-interleave -N/--cpunodebind -m/--membind -C/--physcpubind -p/--preferred "
               "-P/--preferred-many",
     .meanings = k_help,
     .source = "numactl(8) 2.0.16"},
    {.name = "setsid",
     .programs = "setsid",
     .syntax = Syntax::getopt,
     .tail = Tail::command,
     .flags = "-c/--ctty -f/--fork -w/--wait -h/--help -V/--version",
     .meanings = k_help,
     .source = "setsid(1), util-linux 2.38"},
    {.name = "ionice",
     .programs = "ionice",
     .syntax = Syntax::getopt,
     .tail = Tail::command,
     .flags = "-t/--ignore -h/--help -V/--version",
     .values = "-c/--class -n/--classdata",
     .meanings = k_help,
     .source = "ionice(1), util-linux 2.38; -p, -P and -u act on running processes and are not known here"},
    // ---- interpreters ----
    {.name = "python",
     .programs = "python python2* python3* pypy pypy3*",
     .syntax = Syntax::getopt,
     .tail = Tail::python,
     .flags = "-b -B -d -E -i -I -O -P -q -R -s -S -t -u -v -V/--version -x -h/-?/--help --help-env --help-xoptions "
              "--help-all",
     .values = "-W -X -m -c --check-hash-based-pycs",
     .meanings = k_python,
     .source = "python --help, 3.11"},
    {.name = "bash",
     .programs = "bash sh dash zsh ksh",
     .syntax = Syntax::getopt,
     .tail = Tail::shell,
     .flags = "-a -b -c -e -f -h -i -k -l/--login -m -n -p -r -t -u -v -x -B -C -E -H -P -T --debugger "
              "--dump-po-strings --dump-strings --noediting --noprofile --norc --posix --pretty-print --restricted "
              "--verbose --help --version",
     .values = "-o -O --init-file --rcfile",
     .meanings = k_shell,
     .source = "bash(1) 5.2; -s reads the script from stdin and is not known here"},
    // ---- distributed launchers ----
    {.name = "torchrun",
     .programs = "torchrun",
     .modules = "torch.distributed.run torch.distributed.launch",
     .syntax = Syntax::argparse,
     .tail = Tail::script,
     .flags = "-h/--help --standalone -m/--module --no-python --run-path --virtual-local-rank --use-env",
     .values =
         "--nnodes --nproc-per-node --rdzv-backend --rdzv-endpoint --rdzv-id --rdzv-conf --max-restarts "
         "--monitor-interval --start-method --event-log-handler --role --log-dir --logdir -r/--redirects -t/--tee "
         "--local-ranks-filter --node-rank --master-addr --master-port --local-addr --logs-specs "
         "--numa-binding --signals-to-handle --shutdown-timeout --duplicate-stdout-filters "
         "--duplicate-stderr-filters",
     .meanings = k_torchrun,
     .underscores = true,
     .source = "torch/distributed/run.py and launch.py, 1.13 to 2.9"},
    {.name = "deepspeed",
     .programs = "deepspeed deepspeed.pt ds",
     .modules = "deepspeed.launcher.runner",
     .syntax = Syntax::argparse,
     .tail = Tail::script,
     .flags = "-h/--help --module --no_python --no_local_rank --no_ssh --no_ssh_check --force_multi --save_pid "
              "--elastic_training --bind_cores_to_rank -q/--quiet",
     .values = "-H/--hostfile -i/--include -e/--exclude --num_nodes --min_elastic_nodes --max_elastic_nodes "
               "--num_gpus/--num_accelerators --master_port --master_addr --node_rank --launcher --launcher_args "
               "--enable_each_rank_log --autotuning --bind_core_list --ssh_port --venv_script --log_level",
     .meanings = k_deepspeed,
     .carries = Carries::deepspeed,
     .source = "deepspeed/launcher/runner.py, 0.8 to 0.17"},
    {.name = "accelerate",
     .programs = "accelerate",
     .verbs = "launch",
     .syntax = Syntax::exact,
     .tail = Tail::script,
#define ACCELERATE_FLAGS                                                                                               \
  "-h/--help -q/--quiet --cpu --multi_gpu --tpu --ipex --use_xpu --enable_cpu_affinity --dynamo_use_fullgraph "        \
  "--dynamo_use_dynamic --dynamo_use_regional_compilation --use_deepspeed --use_fsdp --use_tp "                        \
  "--use_parallelism_config "                                                                                          \
  "--use_megatron_lm --same_network -m/--module --no_python --tpu_cluster --no_tpu_cluster --tpu_use_sudo "            \
  "--downcast_bf16 --fp8_use_autocast_during_eval --debug"
#define ACCELERATE_VALUES                                                                                              \
  "--config_file --mixed_precision --num_processes --num_machines --num_cpu_threads_per_process --dynamo_backend "     \
  "--dynamo_mode --gpu_ids --machine_rank --main_process_ip --main_process_port -t/--tee --log_dir --role "            \
  "--rdzv_backend --rdzv_conf --max_restarts --monitor_interval --vm --env --main_training_function "                  \
  "--deepspeed_config_file --zero_stage --offload_optimizer_device --offload_param_device "                            \
  "--offload_optimizer_nvme_path --offload_param_nvme_path --gradient_accumulation_steps --gradient_clipping "         \
  "--zero3_init_flag --zero3_save_16bit_model --deepspeed_hostfile --deepspeed_exclusion_filter "                      \
  "--deepspeed_inclusion_filter --deepspeed_multinode_launcher --deepspeed_moe_layer_cls_names --fsdp_version "        \
  "--fsdp_offload_params --fsdp_min_num_params --fsdp_sharding_strategy --fsdp_reshard_after_forward "                 \
  "--fsdp_auto_wrap_policy --fsdp_transformer_layer_cls_to_wrap --fsdp_backward_prefetch "                             \
  "--fsdp_backward_prefetch_policy --fsdp_state_dict_type --fsdp_forward_prefetch --fsdp_use_orig_params "             \
  "--fsdp_cpu_ram_efficient_loading --fsdp_sync_module_states --fsdp_activation_checkpointing --tp_size "              \
  "--megatron_lm_tp_degree --megatron_lm_pp_degree --megatron_lm_num_micro_batches "                                   \
  "--megatron_lm_sequence_parallelism --megatron_lm_recompute_activations "                                            \
  "--megatron_lm_use_distributed_optimizer --megatron_lm_gradient_clipping --fp8_backend --fp8_margin --fp8_interval " \
  "--fp8_format --fp8_amax_history_len --fp8_amax_compute_algo --fp8_override_linear_precision --fp8_opt_level "       \
  "--fp8_enable_fsdp_float8_all_gather --fp8_pad_inner_dim --fp8_recipe "                                              \
  "--parallelism_config_dp_replicate_size --parallelism_config_dp_shard_size --parallelism_config_tp_size "            \
  "--parallelism_config_cp_size --parallelism_config_cp_comm_strategy --aws_access_key_id --aws_secret_access_key "    \
  "--mpirun_hostfile --mpirun_ccl"
     .flags = ACCELERATE_FLAGS,
     .values = ACCELERATE_VALUES,
     .meanings = k_accelerate,
     .underscores = true,
     .source =
         "accelerate/commands/launch.py, 0.20 to 1.11; with a hostfile it writes its environment to .deepspeed_env"},
    {.name = "accelerate",
     .programs = "accelerate-launch",
     .modules = "accelerate.commands.launch",
     .syntax = Syntax::exact,
     .tail = Tail::script,
     .flags = ACCELERATE_FLAGS,
     .values = ACCELERATE_VALUES,
     .meanings = k_accelerate,
     .underscores = true,
     .source =
         "accelerate/commands/launch.py, 0.20 to 1.11; with a hostfile it writes its environment to .deepspeed_env"},
    {.name = "horovodrun",
     .programs = "horovodrun",
     .modules = "horovod.runner.launch",
     .syntax = Syntax::argparse,
     .tail = Tail::command,
     .flags = "-h/--help -v/--version -cb/--check-build --disable-cache --verbose --gloo --mpi --jsrun "
              "--timeline-mark-cycles --no-timeline-mark-cycles --autotune --no-autotune --hierarchical-allreduce "
              "--no-hierarchical-allreduce --hierarchical-allgather --no-hierarchical-allgather --stall-check "
              "--no-stall-check --log-with-timestamp --log-hide-timestamp --log-without-timestamp "
              "--prefix-output-with-timestamp "
              "--tcp/--tcp-flag",
     .values =
         "-np/--num-proc -p/--ssh-port -i/--ssh-identity-file --start-timeout --network-interfaces/--network-interface "
         "--output-filename --config-file --fusion-threshold-mb --cycle-time-ms --cache-capacity "
         "--timeline-filename --min-np/--min-num-proc --max-np/--max-num-proc --slots-per-host/--slots "
         "--elastic-timeout --reset-limit --blacklist-cooldown-range --host-discovery-script --log-level "
         "--autotune-log-file --autotune-warmup-samples --autotune-steps-per-sample "
         "--autotune-bayes-opt-max-samples --autotune-gaussian-process-noise --stall-check-warning-time-seconds "
         "--stall-check-shutdown-time-seconds --mpi-args --binding-args --num-nccl-streams --thread-affinity "
         "--gloo-timeout-seconds --mpi-threads-disable -H/--hosts --hostfile/-hostfile",
     .meanings = k_horovod,
     .carries = Carries::yes,
     .source = "horovod/runner/launch.py 0.28; it exports the whole environment"},
    {.name = "mpirun",
     .programs = "mpirun mpirun.* mpiexec mpiexec.* orterun prterun",
     .syntax = Syntax::single_dash,
     .tail = Tail::contexts,
     .flags =
         "-allow-run-as-root -V/-version -h/-help -q/-quiet -v/-verbose -use-hwthread-cpus -oversubscribe "
         "-nooversubscribe -display-allocation -display-map -display-topo -display-devel-map -report-bindings "
         "-bynode -byslot -bycore -bysocket -bind-to-core -bind-to-socket -bind-to-none -do-not-launch "
         "-do-not-resolve -do-not-join -nolocal -novm -tag-output -timestamp-output -continuous -disable-recovery "
         "-enable-recovery -enable-instant-on-support -forward-signals -get-stack-traces -index-argv-by-rank "
         "-merge-stderr-to-stdout -no-ompi-server -pernode -preload-binary/-s -report-child-jobs-separately "
         "-report-state-on-timeout -staged -show-progress -xterm-hold -gpu -l/-prepend-rank -info -print-all-exitcodes "
         "-genvall -genvnone -envall -envnone -enable-x -disable-auto-cleanup -disable-hostname-propagation "
         "-localroot -rr",
     .values =
         "-np/-n/-c -H/-host/-hosts -machinefile/-default-hostfile/-f/-hostfile -map-by -bind-to -rank-by "
         "-npernode/-N -npersocket -ppn/-perhost -wd/-wdir -prefix -timeout -path -app/-configfile -output-filename -x "
         "-cpu-list/-cpu-set -am -tune -stdin -max-restarts -ompi-server -server-wait-time -ppr -report-pid "
         "-report-uri -cpus-per-proc/-cpus-per-rank -preload-files -xterm -output -runtime-options "
         "-launcher/-rmk -launcher-exec -bootstrap -bootstrap-exec -iface -outfile-pattern "
         "-errfile-pattern -usize -envlist -genvlist -arch -umask -membind -order-nodes -ckpointlib",
     .pairs = "-mca/-gmca/-omca/-prtemca/-pmixmca -genv -env",
     .meanings = k_mpi,
     .carries = Carries::mpi,
     .source = "mpirun(1) Open MPI 4.1, mpiexec.hydra --help MPICH 4.0"},
    {.name = "srun",
     .programs = "srun",
     .syntax = Syntax::getopt,
     .tail = Tail::command,
     .flags = "--async --contiguous --debugger-test -X/--disable-status --exact --external -h/--help -H/--hold "
              "--interactive -l/--label -Z/--no-allocate -O/--overcommit -s/--oversubscribe --parsable "
              "-E/--preserve-env -Q/--quiet --quit-on-interrupt --reboot --spread-job --test-only -u/--unbuffered "
              "--usage --use-min-nodes -v/--verbose -V/--version --wait-for-children --whole",
     .values = SLURM_VALUES "-W/--wait -T/--threads --accel-bind --alloc-nodelist --container-image --container-mounts "
                            "--container-name --container-workdir --cpu-bind --epilog --het-group --jobid "
                            "--mpi --msg-timeout --multi --ntasks-per-tres --prolog --relative/-r --resv "
                            "--slurmd-debug --task-epilog --task-prolog --treewidth",
     .attached = "--bcast --compress --exclusive -I/--immediate -K/--kill-on-bad-exit --nice -k/--no-kill --overlap "
                 "--propagate --pty --resv-ports --send-libs --x11",
     .meanings = k_srun,
     .source = "srun(1) and src/common/slurm_opt.c, Slurm 22.05 to 24.11; --container-* are pyxis'; --multi-prog is "
               "not known here"},
    {.name = "sbatch",
     .programs = "sbatch",
     .syntax = Syntax::getopt,
     .tail = Tail::batch,
     .flags = "--contiguous -h/--help -H/--hold -Q/--quiet --ignore-pbs --kill-on-invalid-dep_ -O/--overcommit "
              "-s/--oversubscribe --parsable --reboot --requeue --no-requeue --spread-job --test-only --usage "
              "--use-min-nodes -v/--verbose -V/--version -W/--wait",
     .values = SLURM_VALUES "-a/--array --batch --export-file --kill-on-invalid-dep --wait-all-nodes --wrap "
                            "--container-image --container-mounts --container-name --container-workdir",
     .attached = "--exclusive --get-user-env --nice -k/--no-kill --propagate --tmp_ --x11",
     .meanings = k_sbatch,
     .source = "sbatch(1) and src/common/slurm_opt.c, Slurm 22.05 to 24.11"},
    // ---- environments ----
    {.name = "conda run",
     .programs = "conda",
     .verbs = "run",
     .syntax = Syntax::argparse,
     .tail = Tail::command,
     .flags = "-h/--help -v/--verbose --dev --debug-wrapper-scripts -s/--no-capture-output/--live-stream",
     .values = "-n/--name -p/--prefix --cwd",
     .meanings = k_conda,
     .source = "conda/cli/main_run.py, 23 to 25"},
    {.name = "mamba run",
     .programs = "mamba micromamba",
     .verbs = "run",
     .syntax = Syntax::exact,
     .tail = Tail::command,
     .flags = "-h/--help -v/--verbose -q/--quiet -y/--yes --json --offline --dry-run --download-only -d/--detach "
              "--clean-env --no-rc --no-env --no-capture-output/--live-stream/-s",
     .values = "-n/--name -p/--prefix -r/--root-prefix -a/--attach --cwd -e/--env --label --rc-file --log-level",
     .meanings = k_mamba,
     .source = "micromamba/src/run.cpp 1.5 and 2.0"},
    {.name = "uv run",
     .programs = "uv",
     .verbs = "run",
     .syntax = Syntax::exact,
     .tail = Tail::command,
     .flags = "-h/--help -v/--verbose -q/--quiet --all-extras --no-dev --only-dev --all-groups --no-default-groups "
              "--dev --isolated --active --no-sync --locked --frozen -s/--script --gui-script --all-packages "
              "--no-project --no-editable --exact --no-env-file -m/--module --offline --no-config --no-progress "
              "--native-tls --managed-python --no-managed-python --no-python-downloads -n/--no-cache -U/--upgrade "
              "--no-index --refresh --reinstall --compile-bytecode --no-sources --no-build --no-binary "
              "--no-build-isolation",
     .values = "--extra --no-extra --group --no-group --only-group -w/--with --with-editable --with-requirements "
               "--env-file -p/--python --package --directory --project --config-file --cache-dir --color --index "
               "--default-index -i/--index-url --extra-index-url -f/--find-links -P/--upgrade-package "
               "--reinstall-package --index-strategy --keyring-provider --resolution --prerelease --exclude-newer "
               "--link-mode --refresh-package -C/--config-setting --no-build-package --no-binary-package "
               "--no-build-isolation-package --allow-insecure-host",
     .meanings = k_uv,
     .source = "uv run --help, 0.8"},
    // ---- containers: what is inside is not this host's ----
    {.name = "docker run",
     .programs = "docker nvidia-docker podman",
     .verbs = "run",
     .syntax = Syntax::pflag,
     .tail = Tail::image,
     .flags = "-d/--detach -i/--interactive -t/--tty -P/--publish-all -q/--quiet --rm --init --privileged --read-only "
              "--no-healthcheck --oom-kill-disable --sig-proxy --disable-content-trust --help --no-hosts --replace "
              "--tls-verify --http-proxy --no-hostname --read-only-tmpfs --rmi --unsetenv-all --passwd",
     .values =
         "--add-host --annotation -a/--attach --blkio-weight --blkio-weight-device --cap-add --cap-drop "
         "--cgroup-parent --cgroupns --cidfile --cpu-count --cpu-percent --cpu-period --cpu-quota "
         "--cpu-rt-period --cpu-rt-runtime -c/--cpu-shares --cpus --cpuset-cpus --cpuset-mems --detach-keys "
         "--device --device-cgroup-rule --device-read-bps --device-read-iops --device-write-bps "
         "--device-write-iops --dns --dns-opt --dns-option --dns-search --domainname --entrypoint -e/--env "
         "--env-file --expose --gpus --group-add --health-cmd --health-interval --health-retries "
         "--health-start-interval --health-start-period --health-timeout -h/--hostname --io-maxbandwidth "
         "--io-maxiops --ip --ip6 --ipc --isolation --kernel-memory -l/--label --label-file --link "
         "--link-local-ip --log-driver --log-opt --mac-address -m/--memory --memory-reservation --memory-swap "
         "--memory-swappiness --mount --name --net --net-alias --network --network-alias --oom-score-adj --pid "
         "--pids-limit --platform -p/--publish --pull --restart --runtime --security-opt --shm-size "
         "--stop-signal --stop-timeout --storage-opt --sysctl --tmpfs --ulimit -u/--user --userns --uts -v/--volume "
         "--volume-driver --volumes-from -w/--workdir --arch --authfile --conmon-pidfile --hooks-dir --os "
         "--pidfile --pod --requires --secret --systemd --timeout --tz --umask --unsetenv --variant",
     .meanings = k_image,
     .carries = Carries::no,
     .source = "docker run --help 27, podman-run(1) 4.3"},
    {.name = "apptainer exec",
     .programs = "apptainer singularity",
     .verbs = "exec",
     .syntax = Syntax::pflag,
     .tail = Tail::image,
     .flags =
         "-h/--help -c/--contain -C/--containall -e/--cleanenv --nv --nvccli --rocm -f/--fakeroot -i/--ipc -p/--pid "
         "-n/--net -u/--userns --uts -w/--writable --writable-tmpfs --no-home --no-init --no-privs --keep-privs "
         "--no-umask --no-eval --no-https --nohttps --disable-cache --allow-setuid --compat --dmtcp-launch_ "
         "--vm --vm-err --passphrase --boot --no-mount_ --sharens --unsquash --no-setgroups --underlay",
     .values = "-B/--bind --mount -H/--home --pwd/--cwd --workdir/-W -o/--overlay -S/--scratch --env --env-file --app "
               "--apply-cgroups --security --add-caps --drop-caps --dns --docker-host --fusemount --hostname --network "
               "--network-args --no-mount --pem-path --pid-file --memory --memory-reservation --memory-swap --cpus "
               "--cpu-shares --cpuset-cpus --cpuset-mems --blkio-weight --blkio-weight-device --pids-limit "
               "--oom-kill-disable_ --authfile --vm-cpu --vm-ram --vm-ip",
     .meanings = k_image,
     .carries = Carries::no,
     .source = "apptainer exec --help 1.3"},
    // ---- programs of frameworks that take options of their own ----
    {.name = "llamafactory-cli",
     .programs = "llamafactory-cli lmf",
     .verbs = "train",
     .syntax = Syntax::exact,
     .tail = Tail::itself,
     .flags = "",
     .source = "LLaMA-Factory src/llamafactory/cli.py 0.9"},
};
#undef ACCELERATE_FLAGS
#undef ACCELERATE_VALUES
#undef SLURM_VALUES

std::string_view last_component(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

/// "torch.distributed.run" as the end of a path: ".../torch/distributed/run.py".
bool is_file_of_module(std::string_view path, std::string_view module) {
  std::string tail = "/" + std::string(module) + ".py";
  std::replace(tail.begin() + 1, tail.end() - 3, '.', '/');
  return path.ends_with(tail);
}

} // namespace

std::span<const Launcher> launchers() {
  return k_launchers;
}

std::string_view opaque_programs() {
  return "nsys ncu nv-nsight-cu-cli nvprof rocprof* omniperf perf strace ltrace gdb lldb valgrind cuda-gdb "
         "compute-sanitizer py-spy scalene memray viztracer austin kernprof mprof coverage ipython ipdb3 jupyter "
         "pytest "
         "sudo su runuser chroot nsenter unshare ssh pdsh clush parallel-ssh pssh mosh xargs parallel find watch "
         "script screen "
         "tmux flock make ninja just dumb-init tini s6-* supervisord systemd-run cgexec singularity-run jsrun aprun "
         "prun bsub qsub salloc scrontab ray dask colossalai composer torchx fabric lightning paddle* modal sky poetry "
         "pipenv pdm hatch pixi rye docker-compose kubectl enroot exec xvfb-run proxychains* unbuffer ts tsp";
}

std::string_view opaque_modules() {
  return "pdb cProfile profile trace coverage debugpy scalene kernprof memory_profiler viztracer "
         "torch.utils.bottleneck "
         "IPython ipdb pytest runpy timeit colossalai.cli composer.cli torchx.apps.*";
}

const Launcher* find_launcher(std::string_view program, std::optional<std::string_view> next) {
  const std::string_view name = last_component(program);
  for (const Launcher& launcher : k_launchers)
    if (is_listed(name, launcher.programs) && (launcher.verbs.empty() || (next && is_listed(*next, launcher.verbs))))
      return &launcher;
  return nullptr;
}

const Launcher* find_module_launcher(std::string_view module) {
  for (const Launcher& launcher : k_launchers) {
    std::string_view rest = launcher.modules;
    while (!rest.empty()) {
      const auto end = std::min(rest.find(' '), rest.size());
      const std::string_view word = rest.substr(0, end);
      if (word == module || is_file_of_module(module, word))
        return &launcher;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return nullptr;
}

} // namespace sharefs::cachefix
