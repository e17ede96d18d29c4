// The table of launchers: its parts joined, and how a row is found. A new launcher is a row in one of the files
// cachefix/launchers/rows_*.cpp and a file in tests/golden/cachefix, and no more.
#include "base/path.hpp"
#include "base/text.hpp"
#include "cachefix/launchers/launcher.hpp"

#include <iterator>
#include <set>
#include <vector>

namespace sharefs::cachefix {
namespace {

constexpr std::string_view k_tools =
    "cd export set source . echo printf test [ [[ true false : exit return shift ulimit umask unset read wait "
    "trap eval local declare pushd popd module ml mkdir rm cp mv ln ls cat sleep date hostname chmod touch tee "
    "grep sed awk which conda mamba deactivate activate nvidia-smi head tail wc sort tr cut basename dirname "
    "scontrol kill sync df du squeue sinfo scancel sacct sstat rsync tar unzip gzip gunzip zstd curl wget git "
    "seq stat chown realpath readlink mktemp nproc free uname id whoami printenv ps pgrep pkill jobs let typeset "
    "readonly alias shopt getopts pip pip3 pip3* pipx twine type hash times yes clear lfs ip ifconfig ping";

/// "torch.distributed.run" as the end of a path: ".../torch/distributed/run.py".
bool is_file_of_module(std::string_view path, std::string_view module) {
  if (module.find('.') == std::string_view::npos)
    return false; // debugpy.py is whose?
  std::string tail = "/" + std::string(module) + ".py";
  std::replace(tail.begin() + 1, tail.end() - 3, '.', '/');
  return path.ends_with(tail);
}

template <class Is> const Launcher* first_row(const Is& is) {
  const auto found = std::ranges::find_if(launchers(), is);
  return found == launchers().end() ? nullptr : &*found;
}

} // namespace

std::span<const Launcher> launchers() {
  static const std::vector<Launcher> rows = [] {
    std::vector<Launcher> all;
    for (const auto part : {prefix_launchers(), training_launchers()})
      all.insert(all.end(), part.begin(), part.end());
    for (Launcher& row : all) {
      const auto space = row.name.find(' ');
      if (row.programs.empty())
        row.programs = row.name.substr(0, space);
      if (row.verbs.empty() && space != std::string_view::npos)
        row.verbs = row.name.substr(space + 1);
    }
    return all;
  }();
  return rows;
}

std::span<const OpaquePrograms> opaque_programs() {
  static constexpr std::string_view k_session = "runs its command in a session of its own, in another environment";
  static constexpr std::string_view k_container = "runs its command in a container";
  static constexpr OpaquePrograms k_rows[] = {
      {"docker nvidia-docker podman podman-* nerdctl finch docker-compose", k_container,
       "run exec container compose create start service stack up", false, true},
      {"apptainer singularity", k_container, "exec run shell instance test", false, true},
      {"enroot", k_container, "start exec batch", false, true},
      {"kubectl oc k3s", k_container, "exec run debug", false, true},
      {"crictl ctr runc crun youki", k_container, "exec run create start", false, true},
      {"lxc incus machinectl", k_container, "exec shell start launch", false, true},
      {"udocker buildah flatpak toolbox distrobox distrobox-* devcontainer cog sarus wwctl lima limactl x11docker",
       k_container, "run exec enter predict train shell container up", false, true},
      {"*.sif *.simg singularity-run shifter ch-run ch-run-oci bwrap proot chroot nsenter systemd-nspawn lxc-attach "
       "lxc-execute firejail",
       k_container, "", false, true},
      {"ssh pdsh clush parallel-ssh pssh mosh pbsdsh qsub oarsub condor_submit scrontab modal sky torchx",
       "runs its command on another machine"},
      {"ray", "runs its command on another machine", "submit exec"},
      {"sudo su runuser su-exec gosu doas sg", "runs its command as another user, in an environment of its own", "",
       true},
      {"tmux", k_session, "new* neww split* send* respawn* run* if* source* pipe*"},
      {"screen", k_session, "-S -d -D -m -dm* -dR -X"},
      {"dtach abduco zellij systemd-run supervisord s6-*", k_session},
  };
  return k_rows;
}

bool starts_container(std::span<const std::string> words) {
  static constexpr std::string_view k_options = "--container* --no-container* --singularity-container*";
  static constexpr std::string_view k_marks = "()[]{}\"'`;|&=$<>,";
  std::vector<std::string> pieces;
  for (std::string word : words) {
    std::ranges::replace_if(word, [](char c) { return k_marks.find(c) != std::string_view::npos; }, ' ');
    std::ranges::move(split_words(word), std::back_inserter(pieces));
  }
  if (std::ranges::any_of(pieces, [](const std::string& piece) { return is_listed(piece, k_options); }))
    return true;
  std::vector<const OpaquePrograms*> rows;
  for (const OpaquePrograms& row : opaque_programs())
    if (row.container)
      rows.push_back(&row);
  std::set<const OpaquePrograms*> runs; // those of which a verb stands behind
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece)
    for (const OpaquePrograms* row : rows) {
      if (is_listed(base_name(*piece), row->programs) && (row->by.empty() || runs.contains(row)))
        return true;
      if (is_listed(*piece, row->by))
        runs.insert(row);
    }
  return false;
}

bool is_plain_tool(std::string_view program) {
  return is_listed(base_name(program), k_tools);
}

std::string_view python_programs() {
  return "lm_eval lm-eval axolotl swift vllm sglang ray torchx lightning jupyter* ipython pytest nemo fairseq-* "
         "paddle* scalene viztracer mprof streamlit gradio modal dask wandb mlflow dvc snakemake trl tune litgpt "
         "llamafactory-cli lmf";
}

std::string_view remote_programs() {
  return "srun sbatch ssh pdsh clush parallel-ssh pssh mosh pbsdsh blaunch bsub qsub oarsub condor_submit jsrun aprun";
}

const Launcher* find_launcher(const Argv& argv, std::size_t at, std::size_t end) {
  const std::string name = base_name(argv[at]);
  return first_row(
      [&](const Launcher& row) { return is_listed(name, row.programs) && verb_length(row, argv, at, end); });
}

std::optional<std::size_t> verb_length(const Launcher& launcher, const Argv& argv, std::size_t at, std::size_t end) {
  if (launcher.verbs.empty())
    return 0;
  const bool found = at + 1 < end && is_listed(argv[at + 1], launcher.verbs);
  return found ? std::optional<std::size_t>(1) : std::nullopt;
}

const Launcher* find_module_launcher(std::string_view module) {
  return first_row([&](const Launcher& row) {
    return any_word(row.modules, ' ',
                    [&](std::string_view word) { return word == module || is_file_of_module(module, word); });
  });
}

} // namespace sharefs::cachefix
