// Rows of the table of launchers: what starts the ranks of a training.
#include "cachefix/launchers/rows.hpp"

namespace sharefs::cachefix {
namespace {

using enum Means;

constexpr Meaning k_torchrun[] = {{"--module", module}, {"--no-python", no_python}, {"--help", information}};
constexpr Meaning k_deepspeed[] = {
    {"--module", module}, {"--no_python", no_python}, {"--hostfile", hostfile}, {"--help", information}};
constexpr Meaning k_accelerate[] = {
    {"--module", module}, {"--no_python", no_python}, {"--deepspeed_hostfile", hostfile}, {"--help", information}};
constexpr Meaning k_horovod[] = {{"--hosts", remote},
                                 {"--hostfile", hostfile},
                                 {"--help", information},
                                 {"--version", information},
                                 {"--check-build", information}};

constexpr Meaning k_colossalai[] = {{"--host", remote}, {"--hostfile", hostfile}, {"--help", information}};
constexpr Meaning k_composer[] = {
    {"--module_mode", module}, {"--command_mode", no_python}, {"--help", information}, {"--version", information}};
constexpr Meaning k_ray[] = {{"--address", elsewhere},
                             {"--working-dir", elsewhere},
                             {"--runtime-env", elsewhere},
                             {"--runtime-env-json", elsewhere},
                             {"--help", information}};
constexpr Meaning k_fabric[] = {{"--help", information}};

/// `fabric run`, and what it was called before 2.2.
constexpr Launcher fabric(std::string_view name, std::string_view program, std::string_view verbs) {
  return {.name = name,
          .programs = program,
          .verbs = verbs,
          .syntax = Syntax::exact,
          .tail = Tail::script,
          .flags = "--help",
          .values = "--accelerator --strategy --devices --num-nodes --node-rank --main-address --main-port --precision",
          .meanings = k_fabric,
          .underscores = true,
          .dashes = Dashes::first_lost,
          .source = "lightning/fabric/cli.py 2.0 to 2.5: calls torchrun in the same environment"};
}

/// A program with verbs that are trainings; its arguments are those behind the verb.
constexpr Launcher trainer(std::string_view program, std::string_view verbs, std::string_view source) {
  return {.name = program,
          .programs = program,
          .verbs = verbs,
          .syntax = Syntax::exact,
          .tail = Tail::itself,
          .source = source};
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
      .flags =
          "-h/--help -q/--quiet --cpu --multi_gpu --tpu --ipex --use_xpu --enable_cpu_affinity --dynamo_use_fullgraph "
          "--dynamo_use_dynamic --dynamo_use_regional_compilation --use_deepspeed --use_fsdp --use_tp "
          "--use_parallelism_config "
          "--use_megatron_lm --same_network -m/--module --no_python --tpu_cluster --no_tpu_cluster --tpu_use_sudo "
          "--downcast_bf16 --fp8_use_autocast_during_eval --debug",
      .values =
          "--config_file --mixed_precision --num_processes --num_machines --num_cpu_threads_per_process "
          "--dynamo_backend "
          "--dynamo_mode --gpu_ids --machine_rank --main_process_ip --main_process_port -t/--tee --log_dir --role "
          "--rdzv_backend --rdzv_conf --max_restarts --monitor_interval --vm --env --main_training_function "
          "--deepspeed_config_file --zero_stage --offload_optimizer_device --offload_param_device "
          "--offload_optimizer_nvme_path --offload_param_nvme_path --gradient_accumulation_steps --gradient_clipping "
          "--zero3_init_flag --zero3_save_16bit_model --deepspeed_hostfile --deepspeed_exclusion_filter "
          "--deepspeed_inclusion_filter --deepspeed_multinode_launcher --deepspeed_moe_layer_cls_names --fsdp_version "
          "--fsdp_offload_params --fsdp_min_num_params --fsdp_sharding_strategy --fsdp_reshard_after_forward "
          "--fsdp_auto_wrap_policy --fsdp_transformer_layer_cls_to_wrap --fsdp_backward_prefetch "
          "--fsdp_backward_prefetch_policy --fsdp_state_dict_type --fsdp_forward_prefetch --fsdp_use_orig_params "
          "--fsdp_cpu_ram_efficient_loading --fsdp_sync_module_states --fsdp_activation_checkpointing --tp_size "
          "--megatron_lm_tp_degree --megatron_lm_pp_degree --megatron_lm_num_micro_batches "
          "--megatron_lm_sequence_parallelism --megatron_lm_recompute_activations "
          "--megatron_lm_use_distributed_optimizer --megatron_lm_gradient_clipping --fp8_backend --fp8_margin "
          "--fp8_interval "
          "--fp8_format --fp8_amax_history_len --fp8_amax_compute_algo --fp8_override_linear_precision --fp8_opt_level "
          "--fp8_enable_fsdp_float8_all_gather --fp8_pad_inner_dim --fp8_recipe "
          "--parallelism_config_dp_replicate_size --parallelism_config_dp_shard_size --parallelism_config_tp_size "
          "--parallelism_config_cp_size --parallelism_config_cp_backend --parallelism_config_cp_comm_strategy "
          "--parallelism_config_sp_size --parallelism_config_sp_backend --parallelism_config_sp_seq_length "
          "--parallelism_config_sp_seq_length_is_variable --parallelism_config_sp_attn_implementation "
          "--aws_access_key_id "
          "--aws_secret_access_key "
          "--mpirun_hostfile --mpirun_ccl",
      .meanings = k_accelerate,
      .underscores = true,
      .dashes = Dashes::behind_program_lost,
      .source = "accelerate/commands/launch.py, 0.20 to 1.12; with a hostfile it writes its environment to "
                ".deepspeed_env"};
}

constexpr Launcher k_training_launchers[] = {
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
     .meanings = k_deepspeed,
     .carries = Carries::deepspeed,
     .default_hostfile = "/job/hostfile",
     .dashes = Dashes::behind_program_lost,
     .source = "deepspeed/launcher/runner.py, 0.8 to 0.17"},
    accelerate("accelerate", "", "launch"),
    accelerate("accelerate-launch", "accelerate.commands.launch", ""),
    {.name = "horovodrun",
     .programs = "horovodrun",
     .modules = "horovod.runner.launch",
     .syntax = Syntax::argparse,
     .tail = Tail::command,
     .flags = "-h/--help -v/--version -cb/--check-build --disable-cache --verbose --gloo --mpi --jsrun "
              "--timeline-mark-cycles --no-timeline-mark-cycles --autotune --no-autotune --hierarchical-allreduce "
              "--no-hierarchical-allreduce --hierarchical-allgather --no-hierarchical-allgather --torus-allreduce "
              "--no-torus-allreduce --stall-check --no-stall-check --log-with-timestamp --log-hide-timestamp "
              "--no-log-hide-timestamp --log-without-timestamp -prefix-timestamp/--prefix-output-with-timestamp "
              "--mpi-threads-disable --no-mpi-threads-disable --tcp",
     .values =
         "-np/--num-proc -p/--ssh-port -i/--ssh-identity-file --start-timeout --network-interfaces --network-interface "
         "--output-filename --config-file --fusion-threshold-mb --cycle-time-ms --cache-capacity "
         "--timeline-filename --min-np/--min-num-proc --max-np/--max-num-proc --slots-per-host "
         "--elastic-timeout --reset-limit --host-discovery-script --log-level "
         "--autotune-log-file --autotune-warmup-samples --autotune-steps-per-sample "
         "--autotune-bayes-opt-max-samples --autotune-gaussian-process-noise --stall-check-warning-time-seconds "
         "--stall-check-shutdown-time-seconds --mpi-args --binding-args --num-nccl-streams --thread-affinity "
         "--gloo-timeout-seconds -H/--hosts -hostfile/--hostfile",
     .pairs = "--blacklist-cooldown-range",
     .meanings = k_horovod,
     .carries = Carries::yes,
     .source = "horovod/runner/launch.py 0.28; it exports the whole environment"},
    {.name = "colossalai run",
     .programs = "colossalai",
     .modules = "colossalai.cli",
     .verbs = "run",
     .syntax = Syntax::exact,
     .tail = Tail::script,
     .flags = "--help",
     .values = "-H/--host --hostfile --include --exclude --num_nodes --nproc_per_node --master_port --master_addr "
               "--extra_launch_args --ssh-port",
     .meanings = k_colossalai,
     .dashes = Dashes::first_lost,
     .source = "colossalai/cli/launcher/__init__.py and run.py: it exports the whole environment to each host; -m of "
               "newer ones is not known here"},
    {.name = "composer",
     .programs = "composer",
     .modules = "composer.cli.launcher",
     .syntax = Syntax::argparse,
     .tail = Tail::script,
     .flags = "-h/--help --version -v/--verbose -m/--module_mode -c/--command_mode",
     .values = "-n/--nproc --stdout --stderr --world_size --base_rank --node_rank --master_addr --master_port",
     .meanings = k_composer,
     .dashes = Dashes::behind_program_lost,
     .source = "composer/cli/launcher.py"},
    fabric("fabric run", "fabric", "run"),
    fabric("lightning run model", "lightning", "run+model"),
    {.name = "ray job submit",
     .programs = "ray",
     .verbs = "job+submit",
     .other_verbs = "exec submit",
     .syntax = Syntax::exact,
     .tail = Tail::command,
     .flags = "--no-wait -v/--verbose --help",
     .values = "--address --job-id --submission-id --runtime-env --runtime-env-json --working-dir --metadata-json "
               "--entrypoint-num-cpus --entrypoint-num-gpus --entrypoint-memory --entrypoint-resources "
               "--entrypoint-label-selector --verify --headers --log-style --log-color",
     .meanings = k_ray,
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
     .flags = "",
     .source = "LLaMA-Factory src/llamafactory/cli.py 0.9"},
};

} // namespace

std::span<const Launcher> training_launchers() {
  return k_training_launchers;
}

} // namespace sharefs::cachefix
