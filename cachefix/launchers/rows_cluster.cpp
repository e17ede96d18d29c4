// Rows of the table of launchers: MPI and Slurm.
#include "cachefix/launchers/rows.hpp"

namespace sharefs::cachefix {
namespace {

using enum Means;

constexpr Meaning k_mpi[] = {{"-wdir", directory},   {"-x", assign},           {"-genv", assign_pair},
                             {"-env", assign_pair},  {"-hosts", remote},       {"-hostfile", hostfile},
                             {"-help", information}, {"-version", information}};
constexpr Meaning k_srun[] = {{"--container-image", container}, {"--chdir", directory},   {"--export", assign_list},
                              {"--help", information},          {"--usage", information}, {"--version", information}};
constexpr Meaning k_sbatch[] = {{"--container-image", container}, {"--chdir", directory},  {"--export", assign_list},
                                {"--wrap", command_text},         {"--help", information}, {"--usage", information},
                                {"--version", information}};

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
  "-N/--nodes -n/--ntasks --ntasks-per-core --ntasks-per-gpu --tasks-per-node/--ntasks-per-node "                      \
  "--ntasks-per-socket --ntasks-per-tres --open-mode -o/--output -p/--partition --power --prefer --priority "          \
  "--profile "                                                                                                         \
  "-q/--qos --reservation --segment --signal --sockets-per-node --switches --thread-spec --threads-per-core "          \
  "-t/--time "                                                                                                         \
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
  "-H/-host/-hosts "                                                                                                   \
  "-machinefile/-default-hostfile/-f/-hostfile -launch-agent -map-by -max-restarts -max-vm-size -np/-n/-c "            \
  "-npernode/-N -npersocket -ompi-server -output -output-filename -path -personality -ppr -prefix -preload-files "     \
  "-rank-by -rf/-rankfile -report-events -report-pid -report-uri -runtime-options -server-wait-time -stdin -timeout "  \
  "-tune -wd/-wdir -x -xml-file -xterm "
#define MPICH_FLAGS                                                                                                    \
  "-disable-auto-cleanup -disable-hostname-propagation -disable-x -enable-x -envall -envnone -genvall -genvnone "      \
  "-info "                                                                                                             \
  "-l/-prepend-rank -localroot -pmi-port -print-all-exitcodes -profile -rr -skip-launch-node"
#define MPICH_VALUES                                                                                                   \
  "-bootstrap/-launcher -bootstrap-exec/-launcher-exec -demux -envlist -errfile-pattern -genvlist -gpus-per-proc "     \
  "-iface -localhost -membind -nameserver -order-nodes -outfile-pattern -ppn/-perhost -prepend-pattern -rmk -topolib " \
  "-umask -usize"

constexpr Launcher k_cluster_launchers[] = {
    {.name = "mpirun",
     .programs = "mpirun mpirun.* mpiexec mpiexec.* orterun prterun",
     .syntax = Syntax::single_dash,
     .tail = Tail::contexts,
     .flags = OPEN_MPI_FLAGS MPICH_FLAGS,
     .values = OPEN_MPI_VALUES MPICH_VALUES,
     .pairs = "-mca/-gmca/-omca/-prtemca/-pmixmca -genv -env",
     .meanings = k_mpi,
     .carries = Carries::mpi,
     .source = "mpirun(1) Open MPI 4.1, mpiexec.hydra --help MPICH 4.0"},
    {.name = "srun",
     .programs = "srun",
     .syntax = Syntax::getopt,
     .tail = Tail::command,
     .flags = SLURM_FLAGS "--async --debugger-test -X/--disable-status --exact --external --interactive -l/--label "
                          "-Z/--no-allocate -E/--preserve-env --quit-on-interrupt -u/--unbuffered --wait-for-children "
                          "--whole",
     .values = SLURM_VALUES
     "--accel-bind --alloc-nodelist --bcast-exclude --cpu_bind/--cpu-bind --epilog --pack-group/--het-group --jobid "
     "--mpi --msg-timeout --multi --prolog -r/--relative --resv --slurmd-debug --task-epilog --task-prolog "
     "-T/--threads "
     "--treewidth -W/--wait " PYXIS_VALUES,
     .attached = "--bcast --compress --exclusive -I/--immediate -K/--kill-on-bad-exit --nice -k/--no-kill --overlap "
                 "--propagate --pty --resv-ports --send-libs --x11",
     .meanings = k_srun,
     .export_variable = "SLURM_EXPORT_ENV",
     .separator = true,
     .help_tells = true,
     .unread = "--multi-prog",
     .source = "srun(1) and src/common/slurm_opt.c, Slurm 22.05 to 24.11; SPANK plugins of the site by its help"},
    {.name = "sbatch",
     .programs = "sbatch",
     .syntax = Syntax::getopt,
     .tail = Tail::batch,
     .flags = SLURM_FLAGS "--ignore-pbs --requeue --no-requeue -W/--wait",
     .values =
         SLURM_VALUES "-a/--array --batch --export-file --kill-on-invalid-dep --wait-all-nodes --wrap " PYXIS_VALUES,
     .attached = "--exclusive --get-user-env --nice -k/--no-kill --propagate --x11",
     .meanings = k_sbatch,
     .export_variable = "SBATCH_EXPORT",
     .separator = true,
     .help_tells = true,
     .source = "sbatch(1) and src/common/slurm_opt.c, Slurm 22.05 to 24.11"},
};

} // namespace

std::span<const Launcher> cluster_launchers() {
  return k_cluster_launchers;
}

} // namespace sharefs::cachefix
