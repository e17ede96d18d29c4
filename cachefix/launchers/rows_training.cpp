// Rows of the table of launchers: what starts the ranks of a training, with MPI and Slurm.
#include "cachefix/launchers/rows.hpp"

namespace sharefs::cachefix {
namespace {

using enum Means;

/// `fabric run`, and what it was called before 2.2.
constexpr Launcher fabric(std::string_view name, std::string_view verbs) {
  return {.name = name,
          .verbs = verbs,
          .syntax = Syntax::exact,
          .tail = Tail::script,
          .flags = "--help",
          .values = "--accelerator --strategy --devices --num-nodes --node-rank --main-address --main-port --precision",
          .underscores = true,
          .dashes = Dashes::first_lost,
          .source = "lightning/fabric/cli.py 2.0 to 2.5: calls torchrun in the same environment"};
}

/// A program with verbs that are trainings; its arguments are those behind the verb.
constexpr Launcher trainer(std::string_view program, std::string_view verbs, std::string_view source) {
  return {.name = program, .verbs = verbs, .syntax = Syntax::exact, .tail = Tail::itself, .source = source};
}

/// `accelerate launch`, and the other names of the same program.
constexpr Launcher accelerate(std::string_view programs, std::string_view modules, std::string_view verbs) {
  return {
      .name = "accelerate",
      .programs = programs,
      .modules = modules,
      .verbs = verbs,
      .syntax = Syntax::exact,
      .tail = Tail::script,
      .flags = "-h/--help -q/--quiet --cpu --multi_gpu --tpu --ipex --use_xpu --enable_cpu_affinity "
               "--dynamo_use_fullgraph --dynamo_use_dynamic --dynamo_use_regional_compilation --use_deepspeed "
               "--use_fsdp --use_tp --use_parallelism_config --use_megatron_lm --same_network -m/--module --no_python "
               "--tpu_cluster --no_tpu_cluster --tpu_use_sudo --downcast_bf16 --fp8_use_autocast_during_eval --debug",
      .values =
          "--config_file --mixed_precision --num_processes --num_machines --num_cpu_threads_per_process "
          "--dynamo_backend --dynamo_mode --gpu_ids --machine_rank --main_process_ip --main_process_port -t/--tee "
          "--log_dir --role --rdzv_backend --rdzv_conf --max_restarts --monitor_interval --vm --env "
          "--main_training_function --deepspeed_config_file --zero_stage --offload_optimizer_device "
          "--offload_param_device --offload_optimizer_nvme_path --offload_param_nvme_path "
          "--gradient_accumulation_steps --gradient_clipping --zero3_init_flag --zero3_save_16bit_model "
          "--deepspeed_hostfile --deepspeed_exclusion_filter --deepspeed_inclusion_filter "
          "--deepspeed_multinode_launcher --deepspeed_moe_layer_cls_names --fsdp_version --fsdp_offload_params "
          "--fsdp_min_num_params --fsdp_sharding_strategy --fsdp_reshard_after_forward --fsdp_auto_wrap_policy "
          "--fsdp_transformer_layer_cls_to_wrap --fsdp_backward_prefetch --fsdp_backward_prefetch_policy "
          "--fsdp_state_dict_type --fsdp_forward_prefetch --fsdp_use_orig_params --fsdp_cpu_ram_efficient_loading "
          "--fsdp_sync_module_states --fsdp_activation_checkpointing --tp_size --megatron_lm_tp_degree "
          "--megatron_lm_pp_degree --megatron_lm_num_micro_batches --megatron_lm_sequence_parallelism "
          "--megatron_lm_recompute_activations --megatron_lm_use_distributed_optimizer --megatron_lm_gradient_clipping "
          "--fp8_backend --fp8_margin --fp8_interval --fp8_format --fp8_amax_history_len --fp8_amax_compute_algo "
          "--fp8_override_linear_precision --fp8_opt_level --fp8_enable_fsdp_float8_all_gather --fp8_pad_inner_dim "
          "--fp8_recipe --parallelism_config_dp_replicate_size --parallelism_config_dp_shard_size "
          "--parallelism_config_tp_size --parallelism_config_cp_size --parallelism_config_cp_backend "
          "--parallelism_config_cp_comm_strategy --parallelism_config_sp_size --parallelism_config_sp_backend "
          "--parallelism_config_sp_seq_length --parallelism_config_sp_seq_length_is_variable "
          "--parallelism_config_sp_attn_implementation --aws_access_key_id --aws_secret_access_key --mpirun_hostfile "
          "--mpirun_ccl",
      .meanings = {{{"--module", module}, {"--no_python", no_python}, {"--deepspeed_hostfile", hostfile}}},
      .underscores = true,
      .dashes = Dashes::behind_program_lost,
      .source =
          "accelerate/commands/launch.py, 0.20 to 1.12; with a hostfile it writes its environment to .deepspeed_env"};
}

// `-W` and `-I` and more differ between srun and sbatch; what both have stands here.
#define SLURM_FLAGS                                                                                                    \
  "--contiguous -h/--help -H/--hold -O/--overcommit -s/--oversubscribe --parsable -Q/--quiet --reboot --spread-job "   \
  "--stepmgr --test-only --usage --use-min-nodes -v/--verbose -V/--version "
#define SLURM_VALUES                                                                                                   \
  "-A/--account --acctg-freq -b/--begin --bb --bbf -D/--chdir --cluster --cluster-constraint -M/--clusters --comment " \
  "-C/--constraint --container --container-id --context -S/--core-spec --cores-per-socket --cpu-freq --cpus-per-gpu "  \
  "-c/--cpus-per-task --deadline --delay-boot -d/--dependency -m/--distribution -e/--error -x/--exclude --export "     \
  "--extra -B/--extra-node-info --gid --gpu-bind --gpu-freq -G/--gpus --gpus-per-node --gpus-per-socket "              \
  "--gpus-per-task --gres --gres-flags --hint -i/--input -J/--job-name -L/--licenses --mail-type --mail-user "         \
  "--mcs-label --mem --mem-bind --mem-per-cpu --mem-per-gpu --mincpus --network -F/--nodefile -w/--nodelist "          \
  "-N/--nodes -n/--ntasks --ntasks-per-core --ntasks-per-gpu --tasks-per-node/--ntasks-per-node --ntasks-per-socket "  \
  "--ntasks-per-tres --open-mode -o/--output -p/--partition --power --prefer --priority --profile -q/--qos "           \
  "--reservation --segment --signal --sockets-per-node --switches --thread-spec --threads-per-core -t/--time "         \
  "--time-min --tmp --tres-bind --tres-per-task --uid --wckey "
// pyxis, the SPANK plugin for containers.
#define PYXIS_VALUES "--container-image --container-mounts --container-name --container-workdir"

// One row for both: the name does not tell which is meant, and no option takes a value in one and none in the other.
// What is not here on purpose: -app and -configfile, whose file holds the commands.
#define OPEN_MPI_FLAGS                                                                                                 \
  "-allow-run-as-root -bind-to-core -bind-to-none -bind-to-socket -bycore -bynode -byslot -bysocket -continuous "      \
  "-d/-debug-devel -debug -debug-daemons -debug-daemons-file -disable-recovery -display-allocation "                   \
  "-display-devel-allocation -display-devel-map -display-diffable-map -display-map -display-topo -do-not-launch "      \
  "-do-not-resolve -dvm -enable-instant-on-support -enable-recovery -forward-signals -fwd-mpirun-port "                \
  "-get-stack-traces -h/-help -index-argv-by-rank -leave-session-attached -merge-stderr-to-stdout -nolocal "           \
  "-nooversubscribe -noprefix -novm -output-proctable -oversubscribe -pernode -s/-preload-binary -q/-quiet "           \
  "-report-bindings -report-child-jobs-separately -report-state-on-timeout -set-cwd-to-session-dir -show-progress "    \
  "-staged -tag-output -timestamp-output -tv -use-hwthread-cpus -use-regexp -v/-verbose -V/-version -xml -xterm-hold "
#define OPEN_MPI_VALUES                                                                                                \
  "-am -bind-to -cf/-cartofile -cpu-list -cpu-set -cpus-per-proc -cpus-per-rank -debugger -display -hnp "              \
  "-H/-host/-hosts -machinefile/-default-hostfile/-f/-hostfile -launch-agent -map-by -max-restarts -max-vm-size "      \
  "-np/-n/-c -npernode/-N -npersocket -ompi-server -output -output-filename -path -personality -ppr -prefix "          \
  "-preload-files -rank-by -rf/-rankfile -report-events -report-pid -report-uri -runtime-options -server-wait-time "   \
  "-stdin -timeout -tune -wd/-wdir -x -xml-file -xterm "
#define MPICH_FLAGS                                                                                                    \
  "-disable-auto-cleanup -disable-hostname-propagation -disable-x -enable-x -envall -envnone -genvall -genvnone "      \
  "-info -l/-prepend-rank -localroot -pmi-port -print-all-exitcodes -profile -rr -skip-launch-node"
#define MPICH_VALUES                                                                                                   \
  "-bootstrap/-launcher -bootstrap-exec/-launcher-exec -demux -envlist -errfile-pattern -genvlist -gpus-per-proc "     \
  "-iface -localhost -membind -nameserver -order-nodes -outfile-pattern -ppn/-perhost -prepend-pattern -rmk -topolib " \
  "-umask -usize"

constexpr Launcher k_training_launchers[] = {
    {.name = "torchrun",
     .modules = "torch.distributed.run torch.distributed.launch",
     .syntax = Syntax::argparse,
     .tail = Tail::script,
     .flags = "-h/--help --standalone -m/--module --no-python --run-path --virtual-local-rank --use-env",
     .values =
         "--nnodes --nproc-per-node --rdzv-backend --rdzv-endpoint --rdzv-id --rdzv-conf --max-restarts "
         "--monitor-interval --start-method --event-log-handler --role --log-dir --logdir -r/--redirects -t/--tee "
         "--local-ranks-filter --node-rank --master-addr --master-port --local-addr --logs-specs --numa-binding "
         "--signals-to-handle --shutdown-timeout --duplicate-stdout-filters --duplicate-stderr-filters",
     .meanings = {{{"--module", module}, {"--no-python", no_python}}},
     .underscores = true,
     .dashes = Dashes::behind_program_lost,
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
     .meanings = {{{"--module", module}, {"--no_python", no_python}, {"--hostfile", hostfile}}},
     .carries = Carries::deepspeed,
     .default_hostfile = "/job/hostfile",
     .dashes = Dashes::behind_program_lost,
     .source = "deepspeed/launcher/runner.py, 0.8 to 0.17"},
    accelerate("accelerate", "", "launch"),
    accelerate("accelerate-launch", "accelerate.commands.launch", ""),
    {.name = "horovodrun",
     .modules = "horovod.runner.launch",
     .syntax = Syntax::argparse,
     .flags = "-h/--help -v/--version -cb/--check-build --disable-cache --verbose --gloo --mpi --jsrun "
              "--timeline-mark-cycles --no-timeline-mark-cycles --autotune --no-autotune --hierarchical-allreduce "
              "--no-hierarchical-allreduce --hierarchical-allgather --no-hierarchical-allgather --torus-allreduce "
              "--no-torus-allreduce --stall-check --no-stall-check --log-with-timestamp --log-hide-timestamp "
              "--no-log-hide-timestamp --log-without-timestamp -prefix-timestamp/--prefix-output-with-timestamp "
              "--mpi-threads-disable --no-mpi-threads-disable --tcp",
     .values =
         "-np/--num-proc -p/--ssh-port -i/--ssh-identity-file --start-timeout --network-interfaces --network-interface "
         "--output-filename --config-file --fusion-threshold-mb --cycle-time-ms --cache-capacity --timeline-filename "
         "--min-np/--min-num-proc --max-np/--max-num-proc --slots-per-host --elastic-timeout --reset-limit "
         "--host-discovery-script --log-level --autotune-log-file --autotune-warmup-samples "
         "--autotune-steps-per-sample --autotune-bayes-opt-max-samples --autotune-gaussian-process-noise "
         "--stall-check-warning-time-seconds --stall-check-shutdown-time-seconds --mpi-args --binding-args "
         "--num-nccl-streams --thread-affinity --gloo-timeout-seconds -H/--hosts -hostfile/--hostfile",
     .pairs = "--blacklist-cooldown-range",
     .meanings = {{{"--hosts", remote}, {"--hostfile", hostfile}}},
     .runs_nothing = "--check-build",
     .source = "horovod/runner/launch.py 0.28; it exports the whole environment"},
    {.name = "colossalai run",
     .modules = "colossalai.cli",
     .syntax = Syntax::exact,
     .tail = Tail::script,
     .flags = "--help",
     .values = "-H/--host --hostfile --include --exclude --num_nodes --nproc_per_node --master_port --master_addr "
               "--extra_launch_args --ssh-port",
     .meanings = {{{"--host", remote}, {"--hostfile", hostfile}}},
     .dashes = Dashes::first_lost,
     .source = "colossalai/cli/launcher/__init__.py and run.py: it exports the whole environment to each host; -m of "
               "newer ones is not known here"},
    {.name = "composer",
     .modules = "composer.cli.launcher",
     .syntax = Syntax::argparse,
     .tail = Tail::script,
     .flags = "-h/--help --version -v/--verbose -m/--module_mode -c/--command_mode",
     .values = "-n/--nproc --stdout --stderr --world_size --base_rank --node_rank --master_addr --master_port",
     .meanings = {{{"--module_mode", module}, {"--command_mode", no_python}}},
     .dashes = Dashes::behind_program_lost,
     .source = "composer/cli/launcher.py"},
    fabric("fabric run", ""),
    fabric("lightning run model", "run+model"),
    {.name = "ray job submit",
     .verbs = "job+submit",
     .other_verbs = "exec submit",
     .syntax = Syntax::exact,
     .flags = "--no-wait -v/--verbose --help",
     .values = "--address --job-id --submission-id --runtime-env --runtime-env-json --working-dir --metadata-json "
               "--entrypoint-num-cpus --entrypoint-num-gpus --entrypoint-memory --entrypoint-resources "
               "--entrypoint-label-selector --verify --headers --log-style --log-color",
     .meanings = {{{"--address", elsewhere},
                   {"--working-dir", elsewhere},
                   {"--runtime-env", elsewhere},
                   {"--runtime-env-json", elsewhere}}},
     .carries = Carries::no,
     .dashes = Dashes::first_lost,
     .source = "ray/dashboard/modules/job/cli.py and cli_utils.py: the command runs on the cluster's head in the "
               "environment of its job supervisor"},
    trainer("tune", "run", "torchtune/_cli/run.py: torchrun's options, a recipe, --config FILE and key=value"),
    trainer("litgpt",
            "finetune finetune_lora finetune_full finetune_adapter finetune_adapter_v2 pretrain evaluate validate",
            "litgpt/__main__.py 0.5: jsonargparse reads all that follows"),
    trainer("trl", "sft dpo grpo kto reward rloo distillation",
            "trl/cli/commands/training.py 1.16: its own script, by accelerate, in the same environment"),
    {.name = "llamafactory-cli",
     .programs = "llamafactory-cli lmf",
     .verbs = "train",
     .syntax = Syntax::exact,
     .tail = Tail::itself,
     .source = "LLaMA-Factory src/llamafactory/cli.py 0.9"},
    {.name = "mpirun",
     .programs = "mpirun mpirun.* mpiexec mpiexec.* orterun prterun",
     .syntax = Syntax::single_dash,
     .tail = Tail::contexts,
     .flags = OPEN_MPI_FLAGS MPICH_FLAGS,
     .values = OPEN_MPI_VALUES MPICH_VALUES,
     .pairs = "-mca/-gmca/-omca/-prtemca/-pmixmca -genv -env",
     .meanings = {{{"-wdir", directory},
                   {"-x", assign},
                   {"-genv", assign_pair},
                   {"-env", assign_pair},
                   {"-hosts", remote},
                   {"-hostfile", hostfile}}},
     .carries = Carries::mpi,
     .source = "mpirun(1) Open MPI 4.1, mpiexec.hydra --help MPICH 4.0"},
    {.name = "srun",
     .flags = SLURM_FLAGS
     "--async --debugger-test -X/--disable-status --exact --external --interactive -l/--label -Z/--no-allocate "
     "-E/--preserve-env --quit-on-interrupt -u/--unbuffered --wait-for-children --whole",
     .values =
         SLURM_VALUES "--accel-bind --alloc-nodelist --bcast-exclude --cpu_bind/--cpu-bind --epilog "
                      "--pack-group/--het-group --jobid --mpi --msg-timeout --multi --prolog -r/--relative --resv "
                      "--slurmd-debug --task-epilog --task-prolog -T/--threads --treewidth -W/--wait " PYXIS_VALUES,
     .attached = "--bcast --compress --exclusive -I/--immediate -K/--kill-on-bad-exit --nice -k/--no-kill --overlap "
                 "--propagate --pty --resv-ports --send-libs --x11",
     .meanings = {{{"--container-image", container}, {"--chdir", directory}, {"--export", assign_list}}},
     .export_variable = "SLURM_EXPORT_ENV",
     .separator = true,
     .help_tells = true,
     .unread = "--multi-prog",
     .source = "srun(1) and src/common/slurm_opt.c, Slurm 22.05 to 24.11; SPANK plugins of the site by its help"},
    {.name = "sbatch",
     .tail = Tail::batch,
     .flags = SLURM_FLAGS "--ignore-pbs --requeue --no-requeue -W/--wait",
     .values =
         SLURM_VALUES "-a/--array --batch --export-file --kill-on-invalid-dep --wait-all-nodes --wrap " PYXIS_VALUES,
     .attached = "--exclusive --get-user-env --nice -k/--no-kill --propagate --x11",
     .meanings = {{{"--container-image", container},
                   {"--chdir", directory},
                   {"--export", assign_list},
                   {"--wrap", command_text}}},
     .export_variable = "SBATCH_EXPORT",
     .separator = true,
     .help_tells = true,
     .source = "sbatch(1) and src/common/slurm_opt.c, Slurm 22.05 to 24.11"},
};

} // namespace

std::span<const Launcher> training_launchers() {
  return k_training_launchers;
}

} // namespace sharefs::cachefix
