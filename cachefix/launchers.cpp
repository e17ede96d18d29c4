// The table of launchers: its parts joined, and how a row is found. A new launcher is a row in one of the files
// launchers_*.cpp and a file in tests/golden/cachefix, and no more.
#include "base/path.hpp"
#include "cachefix/launcher_rows.hpp"

#include <vector>

namespace sharefs::cachefix {
namespace {

/// "torch.distributed.run" as the end of a path: ".../torch/distributed/run.py".
bool is_file_of_module(std::string_view path, std::string_view module) {
  std::string tail = "/" + std::string(module) + ".py";
  std::replace(tail.begin() + 1, tail.end() - 3, '.', '/');
  return path.ends_with(tail);
}

} // namespace

std::span<const Launcher> launchers() {
  static const std::vector<Launcher> rows = [] {
    std::vector<Launcher> all;
    for (const auto part : {prefix_launchers(), training_launchers(), cluster_launchers(), environment_launchers()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return rows;
}

std::string_view opaque_programs() {
  return "nsys ncu nv-nsight-cu-cli nvprof rocprof* omniperf perf strace ltrace gdb lldb valgrind cuda-gdb "
         "compute-sanitizer py-spy scalene memray viztracer austin kernprof mprof coverage ipython ipdb3 jupyter "
         "pytest "
         "sudo su runuser chroot nsenter unshare ssh pdsh clush parallel-ssh pssh mosh xargs parallel find watch "
         "script screen chronic command ibrun mpirun_rsh flux pbsdsh blaunch condor_submit oarsub gosu su-exec doas sg "
         "chrt "
         "setarch faketime fakeroot rlwrap hyperfine rr heaptrack uftrace vtune likwid-* scorep* tau_exec hpcrun "
         "ch-run shifter udocker nerdctl crictl bwrap firejail toolbox distrobox flatpak direnv nix nix-shell guix "
         "wandb mlflow dvc snakemake nextflow "
         "tmux flock make ninja just dumb-init tini s6-* supervisord systemd-run cgexec singularity-run jsrun aprun "
         "prun bsub qsub salloc scrontab ray dask colossalai composer torchx fabric lightning paddle* modal sky poetry "
         "pipenv pdm hatch pixi rye docker-compose kubectl enroot exec xvfb-run proxychains* unbuffer ts tsp";
}

std::string_view remote_programs() {
  return "srun sbatch ssh pdsh clush parallel-ssh pssh mosh pbsdsh blaunch bsub qsub oarsub condor_submit jsrun aprun";
}

std::string_view opaque_modules() {
  return "pdb cProfile profile trace coverage debugpy scalene kernprof memory_profiler viztracer "
         "torch.utils.bottleneck "
         "IPython ipdb pytest runpy timeit colossalai.cli composer.cli torchx.apps.*";
}

const Launcher* find_launcher(std::string_view program, std::optional<std::string_view> next) {
  const std::string name = base_name(program);
  for (const Launcher& launcher : launchers())
    if (is_listed(name, launcher.programs) && (launcher.verbs.empty() || (next && is_listed(*next, launcher.verbs))))
      return &launcher;
  return nullptr;
}

const Launcher* find_launcher_by_name(std::string_view program) {
  const std::string name = base_name(program);
  for (const Launcher& launcher : launchers())
    if (is_listed(name, launcher.programs))
      return &launcher;
  return nullptr;
}

const Launcher* find_module_launcher(std::string_view module) {
  for (const Launcher& launcher : launchers()) {
    bool found = false;
    each_word(launcher.modules, ' ',
              [&](std::string_view word) { found = found || word == module || is_file_of_module(module, word); });
    if (found)
      return &launcher;
  }
  return nullptr;
}

} // namespace sharefs::cachefix
