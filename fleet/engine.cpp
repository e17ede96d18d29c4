#include "fleet/engine.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "fleet/frames.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace sharefs::fleet {

namespace {

constexpr std::chrono::seconds k_engine_grace{5}; ///< time that the engine waits after the deadline on the node

constexpr std::array k_engines{
    // xargs -P runs ssh to each node: it has the least overhead and is on every machine.
    Engine{"xargs", "-a {names} -P {at_a_time} -n 1 sh {script}"},
    // ClusterShell's clush, with our script as the command of its worker `exec`. --conf: the settings of a site may
    // enable tree mode. -n: clush would wait for an open pipe on stdin.
    Engine{"clush", "--conf=/dev/null -n -q -S -R exec -f {at_a_time} --hostfile {names} sh {script} %h"},
    // LLNL's pdsh, with our script as the command of its module `exec`.
    Engine{"pdsh", "-R exec -S -f {at_a_time} -w ^{names} sh {script} %h"},
    // srun: a step in the present allocation of Slurm, as this user, without ssh.
    Engine{"srun",
           "--nodelist={names} --nodes={nodes} --ntasks-per-node=1 --overlap --export=ALL --kill-on-bad-exit=0 sh -c "
           "{here}",
           true},
};

constexpr const char* k_system_directories = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr std::uint32_t k_others_write = 022, k_sticky = 01000;

bool is_installed(sys::System& system, std::string_view program, const std::string& path) {
  return std::ranges::any_of(split(path, ':'), [&](const std::string& directory) {
    return system.entry({.path = join_path(directory, std::string(program)), .follow = true}).exists();
  });
}

/// True if the directory and each directory above it belong to root and nobody else can write to them.
bool belongs_to_root(sys::System& system, const std::string& directory) {
  std::string way;
  for (const auto& part : split(normalize_path(directory), '/')) {
    way = part.empty() ? "/" : join_path(way, part);
    const auto entry = system.entry({.path = way, .follow = true});
    const bool is_last = way == directory;
    if (entry.kind != sys::EntryKind::directory || entry.uid != 0 ||
        ((entry.mode & k_others_write) != 0 && (is_last || (entry.mode & k_sticky) == 0)))
      return false;
  }
  return true;
}

// Nothing is run as root from the PATH of the login user. The second form calls sudo with the path of sharefs only, so
// that a sudoers file can allow just that program.
constexpr const char* k_sudo_for_all = "[ \"$(id -u)\" = 0 ] || set -- sudo -n env PATH={0} \"$@\"; ";
constexpr const char* k_sudo_for_sharefs =
    "[ \"$(id -u)\" = 0 ] || {{ PATH={0}; p=$(command -v \"$1\") || {{ echo \"$1: not found\" >&2; exit 127; }}; "
    "shift; set -- sudo -n \"$p\" \"$@\"; }}; ";

/// Returns a command line for the login shell of a node, whatever shell that is. The PATH of the login user, and of
/// sudo, may be short.
std::string shell_line(const Argv& words, const std::string& become_root) {
  std::string line = "sh -c " +
                     single_quote("PATH=$PATH:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin; " +
                                  become_root + "exec \"$@\"") +
                     " sh";
  for (const auto& word : words)
    line += " " + single_quote(word);
  return line;
}

/// Returns the whole command line on a node: it becomes root if needed, sets a deadline, and runs the words.
std::string command_on_node(const Asking& asking, const std::string& program, const std::string& node) {
  const auto seconds = std::to_string(asking.command.count());
  std::string line;
  if (asking.script.empty())
    line = shell_line({program, "--frame"},
                      asking.as_root ? fmt::format(k_sudo_for_sharefs, k_system_directories) : std::string()) +
           fmt::format(" {}:{}:{}", k_protocol, node, seconds);
  else
    line = node_line({"timeout", "-k", "2", seconds, "sh", "-c", asking.script, "sh"}, asking.as_root) + " " + node;
  for (const auto& word : asking.words)
    line += " " + single_quote(word);
  return line;
}

Argv ssh_words(const Asking& asking) {
  auto ssh = asking.ssh;
  const auto options = ssh_options(asking.connect);
  ssh.insert(ssh.end(), options.begin(), options.end());
  if (!asking.ssh_config.empty())
    ssh.insert(ssh.end(), {"-F", asking.ssh_config});
  return ssh;
}

/// Returns the command that runs on this machine for the node `$n`. The command must end when the engine is ended:
/// timeout(1) has a process group of its own, which a signal to the engine's group does not reach, so setpriv
/// --pdeathsig ends it with the script.
std::string command_from_here(const Asking& asking, std::chrono::seconds limit) {
  std::string line = fmt::format("setpriv --pdeathsig TERM timeout -k 5 {} {} --frame {}:\"$n\"", limit.count(),
                                 single_quote(asking.program), k_protocol);
  for (const auto& word : asking.words)
    line += " " + single_quote(word);
  return line + " --node \"$n\" --rsh " + single_quote(shell_join(ssh_words(asking)) + " --");
}

} // namespace

Argv ssh_options(std::chrono::seconds connect) {
  Argv options{"-T", "-x", "-a"};
  for (const auto& option :
       {std::string("BatchMode=yes"), fmt::format("ConnectTimeout={}", connect.count()),
        std::string("ServerAliveInterval=5"), std::string("ServerAliveCountMax=3"), std::string("RemoteCommand=none")})
    options.insert(options.end(), {"-o", option});
  return options;
}

Argv argv_of(const Engine& engine, const Fanout& fanout) {
  Argv argv{std::string(engine.name)};
  for (const auto& word : split_words(engine.words))
    argv.push_back(fmt::format(fmt::runtime(word), fmt::arg("names", fanout.names), fmt::arg("script", fanout.script),
                               fmt::arg("here", fanout.here), fmt::arg("at_a_time", fanout.at_a_time),
                               fmt::arg("nodes", fanout.nodes)));
  return argv;
}

std::string path_for_engines(sys::System& system, const std::string& path) {
  const bool is_root = system.identity().uid == 0;
  std::string kept;
  for (const auto& directory : split(path, ':'))
    if (directory.starts_with('/') && (!is_root || belongs_to_root(system, directory)))
      kept += directory + ":";
  return kept + k_system_directories;
}

Result<const Engine*> choose_engine(sys::System& system, std::string_view wanted, const std::string& path) {
  for (const auto& engine : k_engines) {
    if (wanted.empty() ? engine.joins_streams : engine.name != wanted)
      continue;
    if (is_installed(system, engine.name, path)) {
      if (!engine.joins_streams && !is_installed(system, "ssh", path))
        return fail(ErrorCode::not_found, "ssh is not installed here", "install openssh-client, or openssh-clients");
      return &engine;
    }
    if (!wanted.empty())
      return fail(ErrorCode::not_found, fmt::format("the engine `{}` is not installed here", wanted),
                  "leave --engine out, or install it");
  }
  std::vector<std::string> names;
  for (const auto& engine : k_engines)
    names.emplace_back(engine.name);
  if (wanted.empty())
    return fail(ErrorCode::not_found, "no program that can run commands on many nodes is installed here",
                "install findutils (xargs)");
  return fail(ErrorCode::usage, fmt::format("no engine is called `{}`", wanted),
              did_you_mean_hint(wanted, names, "one of " + join(names, ", ")));
}

std::string node_line(const Argv& words, bool as_root) {
  return shell_line(words, as_root ? fmt::format(k_sudo_for_all, k_system_directories) : std::string());
}

std::string node_script(const std::string& directory, const Asking& asking) {
  const auto limit = asking.connect + asking.command + k_engine_grace;
  std::string text =
      fmt::format("#!/bin/sh\n"
                  "# Written by sharefs for one run: asks one node.\n"
                  "cd {} || exit 1\n"
                  "[ -e go ] || exit 0\n"
                  "trap '' XFSZ\n" // XFSZ would kill the script, and then xargs ends for all nodes
                  "n=$1 w= i={}\n"
                  "echo $$ >\"$n.pid\"\n" // lets another process end what the script starts
                  "[ ! -e \"$n.in\" ] || i=$n.in\n"
                  "[ ! -r \"$n.words\" ] || read -r w <\"$n.words\"\n"
                  "case $n in\n",
                  single_quote(directory), single_quote(asking.input.empty() ? "/dev/null" : asking.input));
  if (asking.from_here) {
    text += fmt::format("*) {} ;;\n", command_from_here(asking, limit));
  } else {
    if (!asking.here.empty())
      text += fmt::format("{}) {} $w ;;\n", join(asking.here, "|"), command_on_node(asking, asking.program, "\"$n\""));
    // --foreground keeps ssh in the engine's process group, so that a signal to the group ends ssh, too.
    Argv ssh{"timeout", "--foreground", "-k", "2", std::to_string(limit.count())};
    const auto words = ssh_words(asking);
    ssh.insert(ssh.end(), words.begin(), words.end());
    // This is the one argument for the shell of the node; the node's name is put in where the mark stands.
    constexpr std::string_view k_name = "@NODE@";
    auto remote = single_quote(command_on_node(asking, "sharefs", std::string(k_name)));
    remote.replace(remote.find(k_name), k_name.size(), "'\"$n\"'");
    // Only output from nodes is limited: a command on this machine may write files of any size. ulimit counts blocks of
    // 512 bytes.
    text += fmt::format("*) ulimit -f {}; {} -- \"$n\" {}\" $w\" ;;\n", k_output_limit / 512, shell_join(ssh), remote);
  }
  text += "esac >\"$n.out\" 2>\"$n.err\" <\"$i\"\n"
          "echo $? >\"$n.end\"\n";
  return text;
}

std::string task_text(const Asking& asking) {
  auto text = command_on_node(asking, "sharefs", "\"$SLURMD_NODENAME\"");
  return "exec " + text;
}

std::string ssh_config_of(const std::vector<Node>& nodes) {
  std::string text;
  for (const auto& node : nodes) {
    const bool has_address = !node.address.empty() && node.address != node.name;
    if (!has_address && node.user.empty())
      continue;
    text += fmt::format("Host {}\n", node.name);
    if (has_address)
      text += fmt::format("  HostName {}\n", node.address);
    if (!node.user.empty())
      text += fmt::format("  User {}\n", node.user);
  }
  // In ssh_config(5) the first value counts; with -F ssh reads neither of its own files, so include both.
  return text.empty() ? "" : text + "Match all\nInclude ~/.ssh/config\nInclude /etc/ssh/ssh_config\n";
}

} // namespace sharefs::fleet
