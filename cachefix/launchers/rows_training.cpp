// Rows of the table of launchers: what starts the ranks of a training, with MPI and Slurm.
#include "cachefix/launchers/launcher.hpp"

namespace sharefs::cachefix {
namespace {

/// `accelerate launch`, and the other names of the same program.
constexpr Launcher accelerate(std::string_view programs, std::string_view modules, std::string_view verbs) {
  return {
      .name = "accelerate",
      .programs = programs,
      .modules = modules,
      .verbs = verbs,
      .syntax = Syntax::exact,
      .tail = Tail::script,
      .options = "-m/--module@module --no_python@no_python -h/--help -q/--quiet --{cpu,multi_gpu,tpu,ipex,"
                 "enable_cpu_affinity,same_network,tpu_cluster,no_tpu_cluster,tpu_use_sudo,downcast_bf16,"
                 "fp8_use_autocast_during_eval,debug} --dynamo_use_{fullgraph,dynamic,regional_compilation} --use_{xpu,"
                 "deepspeed,fsdp,tp,parallelism_config,megatron_lm} --deepspeed_hostfile=@hostfile -t/--tee= "
                 "--{config_file,mixed_precision,dynamo_backend,dynamo_mode,gpu_ids,machine_rank,log_dir,role,"
                 "rdzv_backend,rdzv_conf,max_restarts,monitor_interval,vm,env,zero_stage,gradient_accumulation_steps,"
                 "gradient_clipping,zero3_init_flag,zero3_save_16bit_model,tp_size,aws_access_key_id,"
                 "aws_secret_access_key,mpirun_hostfile,mpirun_ccl}= --parallelism_config_{dp_replicate_size,"
                 "dp_shard_size,tp_size,cp_size,cp_backend,cp_comm_strategy,sp_size,sp_backend,sp_seq_length,"
                 "sp_seq_length_is_variable,sp_attn_implementation}= --megatron_lm_{tp_degree,pp_degree,"
                 "num_micro_batches,sequence_parallelism,recompute_activations,use_distributed_optimizer,"
                 "gradient_clipping}= --fsdp_{version,offload_params,min_num_params,sharding_strategy,"
                 "reshard_after_forward,auto_wrap_policy,transformer_layer_cls_to_wrap,backward_prefetch,"
                 "backward_prefetch_policy,state_dict_type,forward_prefetch,use_orig_params,cpu_ram_efficient_loading,"
                 "sync_module_states,activation_checkpointing}= --deepspeed_{config_file,exclusion_filter,"
                 "inclusion_filter,multinode_launcher,moe_layer_cls_names}= --fp8_{backend,margin,interval,format,"
                 "amax_history_len,amax_compute_algo,override_linear_precision,opt_level,enable_fsdp_float8_all_gather,"
                 "pad_inner_dim,recipe}= --offload_{optimizer_device,param_device,optimizer_nvme_path,"
                 "param_nvme_path}= --main_{process_ip,process_port,training_function}= --num_{processes,machines,"
                 "cpu_threads_per_process}=",
      .underscores = true,
      .source =
          "accelerate/commands/launch.py, 0.20 to 1.12; with a hostfile it writes its environment to .deepspeed_env"};
}

// `-W` and `-I` and more differ between srun and sbatch; what both have stands here.
#define SLURM_OPTIONS                                                                                                  \
  "-h/--help -H/--hold -O/--overcommit -s/--oversubscribe -Q/--quiet -v/--verbose -V/--version "                       \
  "--{contiguous,parsable,"                                                                                            \
  "reboot,spread-job,stepmgr,test-only,usage,use-min-nodes} -D/--chdir=@directory --export=@assign_list "              \
  "-A/--account= "                                                                                                     \
  "-b/--begin= -M/--clusters= -C/--constraint= -S/--core-spec= -c/--cpus-per-task= -d/--dependency= "                  \
  "-m/--distribution= -e/--error= -x/--exclude= -B/--extra-node-info= -G/--gpus= -i/--input= -J/--job-name= "          \
  "-L/--licenses= -F/--nodefile= -w/--nodelist= -N/--nodes= -n/--ntasks= --tasks-per-node/--ntasks-per-node= "         \
  "-o/--output= -p/--partition= -q/--qos= -t/--time= --{acctg-freq,bb,bbf,cluster,cluster-constraint,comment,"         \
  "context,cores-per-socket,cpu-freq,cpus-per-gpu,deadline,delay-boot,extra,gid,gpu-bind,"                             \
  "gpu-freq,gres,gres-flags,hint,mail-type,mail-user,mcs-label,mem,mincpus,network,open-mode,power,prefer,priority,"   \
  "profile,reservation,segment,signal,sockets-per-node,switches,thread-spec,threads-per-core,time-min,tmp,tres-bind,"  \
  "tres-per-task,uid,wckey}= --ntasks-per-{core,gpu,socket,tres}= --gpus-per-{node,socket,task}= --mem-{bind,per-cpu," \
  "per-gpu}= --{no-container*,container*,environment,singularity-container}[=]@container "
/// Of Slurm itself and of pyxis (args.c 0.21); those of a step, of a job, and those that a job was submitted with. The
/// container engine of CSCS has --environment.
#define CONTAINER_VARIABLES                                                                                            \
  "SRUN_CONTAINER* SLURM_CONTAINER* SBATCH_CONTAINER* SALLOC_CONTAINER* PYXIS_CONTAINER* "                             \
  "_SLURM_SPANK_OPTION_pyxis_container* SLURM_SPANK__SLURM_SPANK_OPTION_pyxis_container*"

// One row for both: the name does not tell which is meant, and no option takes a value in one and none in the other.
// What is not here on purpose: -app and -configfile, whose file holds the commands.

constexpr Launcher k_training_launchers[] = {
    {.name = "torchrun",
     .modules = "torch.distributed.run torch.distributed.launch",
     .syntax = Syntax::argparse,
     .tail = Tail::script,
     .options = "-m/--module@module --no-python@no_python -h/--help --{standalone,run-path,virtual-local-rank,"
                "use-env} -r/--redirects= -t/--tee= --{nnodes,nproc-per-node,max-restarts,monitor-interval,"
                "start-method,event-log-handler,role,log-dir,logdir,local-ranks-filter,node-rank,master-addr,"
                "master-port,local-addr,logs-specs,numa-binding,signals-to-handle,shutdown-timeout,"
                "duplicate-stdout-filters,duplicate-stderr-filters}= --rdzv-{backend,endpoint,id,conf}=",
     .underscores = true,
     .source = "torch/distributed/run.py and launch.py, 1.13 to 2.9"},
    {.name = "deepspeed",
     .programs = "deepspeed deepspeed.pt ds",
     .modules = "deepspeed.launcher.runner",
     .syntax = Syntax::argparse,
     .tail = Tail::script,
     .options = "--module@module --no_python@no_python -h/--help -q/--quiet --{no_local_rank,no_ssh,no_ssh_check,"
                "force_multi,save_pid,elastic_training,bind_cores_to_rank} -H/--hostfile=@hostfile -i/--include= "
                "-e/--exclude= --num_gpus/--num_accelerators= --{num_nodes,min_elastic_nodes,max_elastic_nodes,"
                "master_port,master_addr,node_rank,launcher,launcher_args,enable_each_rank_log,autotuning,"
                "bind_core_list,ssh_port,venv_script,log_level}=",
     .carries = Carries::deepspeed,
     .default_hostfile = "/job/hostfile",
     .source = "deepspeed/launcher/runner.py, 0.8 to 0.17"},
    accelerate("accelerate", "", "launch"),
    accelerate("accelerate-launch", "accelerate.commands.launch", ""),
    {.name = "mpirun",
     .programs = "mpirun mpirun.* mpiexec mpiexec.* orterun prterun",
     .syntax = Syntax::single_dash,
     .tail = Tail::contexts,
     .options = "-d/-debug-devel -h/-help -s/-preload-binary -q/-quiet -tv -v/-verbose -V/-version -l/-prepend-rank "
                "-rr -{allow-run-as-root,bycore,bynode,byslot,bysocket,continuous,debug,debug-daemons,"
                "debug-daemons-file,do-not-launch,do-not-resolve,dvm,forward-signals,fwd-mpirun-port,get-stack-traces,"
                "index-argv-by-rank,leave-session-attached,merge-stderr-to-stdout,nolocal,nooversubscribe,noprefix,"
                "novm,output-proctable,oversubscribe,pernode,set-cwd-to-session-dir,show-progress,staged,tag-output,"
                "timestamp-output,use-hwthread-cpus,use-regexp,xml,xterm-hold,envall,envnone,genvall,genvnone,info,"
                "localroot,pmi-port,print-all-exitcodes,profile,skip-launch-node} -display-{allocation,"
                "devel-allocation,devel-map,diffable-map,map,topo} -disable-{recovery,auto-cleanup,"
                "hostname-propagation,x} -bind-to-{core,none,socket} -enable-{instant-on-support,recovery,x} "
                "-report-{bindings,child-jobs-separately,state-on-timeout} -H/-host/-hosts=@remote "
                "-machinefile/-default-hostfile/-f/-hostfile=@hostfile -wd/-wdir=@directory -x=@assign -am= "
                "-cf/-cartofile= -np/-n/-c= -npernode/-N= -rf/-rankfile= -bootstrap/-launcher= "
                "-bootstrap-exec/-launcher-exec= -ppn/-perhost= -{bind-to,cpu-list,cpu-set,cpus-per-proc,"
                "cpus-per-rank,debugger,display,hnp,launch-agent,map-by,max-restarts,max-vm-size,npersocket,"
                "ompi-server,output,output-filename,path,personality,ppr,prefix,preload-files,rank-by,runtime-options,"
                "server-wait-time,stdin,timeout,tune,xml-file,xterm,demux,envlist,errfile-pattern,genvlist,"
                "gpus-per-proc,iface,localhost,membind,nameserver,order-nodes,outfile-pattern,prepend-pattern,rmk,"
                "topolib,umask,usize}= -report-{events,pid,uri}= -genv==@assign_pair -env==@assign_pair "
                "-mca/-gmca/-omca/-prtemca/-pmixmca==",
     .carries = Carries::mpi,
     .source = "mpirun(1) Open MPI 4.1, mpiexec.hydra --help MPICH 4.0"},
    {.name = "srun",
     .options = SLURM_OPTIONS
     "-X/--disable-status -l/--label -Z/--no-allocate -E/--preserve-env -u/--unbuffered "
     "--{async,debugger-test,exact,external,interactive,quit-on-interrupt,wait-for-children,whole} "
     "--cpu_bind/--cpu-bind= --pack-group/--het-group= -r/--relative= "
     "-T/--threads= -W/--wait= --{accel-bind,alloc-nodelist,bcast-exclude,epilog,jobid,mpi,msg-timeout,"
     "multi,prolog,resv,slurmd-debug,task-epilog,task-prolog,treewidth}= -I/--immediate[=] -K/--kill-on-bad-exit[=] "
     "-k/--no-kill[=] --{bcast,compress,exclusive,"
     "nice,overlap,propagate,pty,resv-ports,send-libs,x11}[=]",
     .export_variable = "SLURM_EXPORT_ENV",
     .container_variables = CONTAINER_VARIABLES,
     .source = "srun(1) and src/common/slurm_opt.c, Slurm 22.05 to 24.11"},
    {.name = "sbatch",
     .tail = Tail::batch,
     .options = SLURM_OPTIONS "-W/--wait --{ignore-pbs,requeue,no-requeue} --wrap=@command_text "
                              "-a/--array= --{batch,export-file,kill-on-invalid-dep,wait-all-nodes}= "
                              "-k/--no-kill[=] --{exclusive,get-user-env,nice,propagate,x11}[=]",
     .export_variable = "SBATCH_EXPORT",
     .container_variables = CONTAINER_VARIABLES,
     .source = "sbatch(1) and src/common/slurm_opt.c, Slurm 22.05 to 24.11"},
};

} // namespace

std::span<const Launcher> training_launchers() {
  return k_training_launchers;
}

} // namespace sharefs::cachefix
