#include "exports/server.hpp"

#include "base/argv.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "sys/find_processes.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <set>

namespace sharefs::exports {

namespace {

constexpr std::array k_server_programs{"exportfs", "rpc.nfsd", "rpc.mountd", "nfsv4.exportd", "rpcbind"};
constexpr std::array k_units{"nfs-server.service", "nfs-kernel-server.service", "nfs-mountd.service",
                             "rpcbind.socket",     "rpcbind.service",           "rpc-statd.service"};
/// /proc/PID/comm is cut at 15 bytes; these names are shorter.
constexpr std::array k_daemons{"rpcbind", "rpc.statd", "rpc.mountd", "nfsdcld", "nfsv4.exportd"};
constexpr std::size_t k_text_limit = 65536;
constexpr std::chrono::milliseconds k_conf_deadline{5'000};

sys::EntryQuery content_of(std::string path) {
  return {.path = std::move(path), .follow = true, .read_bytes = k_text_limit};
}

void find_programs(sys::System& system, ServerState& state) {
  sys::EntryRequest request;
  for (const auto* program : k_server_programs)
    for (const auto* directory : {"/usr/sbin/", "/sbin/"}) // they differ on systems without a merged /usr
      request.queries.push_back({.path = std::string(directory) + program, .follow = true});
  const auto entries = system.entries(request);
  for (std::size_t i = 0; i < k_server_programs.size(); ++i)
    if (entries[2 * i].kind != sys::EntryKind::file && entries[2 * i + 1].kind != sys::EntryKind::file)
      state.missing.emplace_back(k_server_programs.at(i));
}

Result<void> read_kernel(sys::System& system, ServerState& state) {
  TRY_ASSIGN(const auto mounts, system.mounts());
  const auto* const nfsd = mounts.at("/proc/fs/nfsd");
  state.nfsd_mounted = nfsd != nullptr && nfsd->fs_type == "nfsd";
  state.pipefs_mounted =
      std::ranges::any_of(mounts.entries(), [](const sys::MountEntry& entry) { return entry.fs_type == "rpc_pipefs"; });
  if (state.nfsd_mounted) {
    const auto entries = system.entries({{content_of("/proc/fs/nfsd/threads"), content_of("/proc/fs/nfsd/versions")}});
    state.visible = entries[0].error_number == 0;
    const auto text = trim(entries[0].content);
    std::from_chars(text.data(), text.data() + text.size(), state.threads);
    const auto versions = split_words(trim(entries[1].content));
    state.version3 = std::ranges::count(versions, "-3") == 0;
  }
  if (!state.running())
    state.version3 = nfs_conf_flag(system, "nfsd", "vers3", true);
  return {};
}

Result<void> ask_systemd(sys::System& system, ServerState& state) {
  Argv words{"systemctl", "show", "--property=Id,LoadState,ActiveState,UnitFileState"};
  words.insert(words.end(), k_units.begin(), k_units.end());
  TRY_ASSIGN(const auto completed, system.run({.argv = std::move(words)}));
  if (!completed.ok())
    return fail(ErrorCode::failed, "`systemctl show` failed: " + std::string(trim(completed.err)));
  std::vector<Unit> units(1); // systemctl prints a paragraph per unit, in the given order; an alias has another Id
  for (const auto& line : split_lines(completed.out)) {
    if (line.empty())
      units.emplace_back();
    else if (line.starts_with("LoadState="))
      units.back().load = line.substr(10);
    else if (line.starts_with("ActiveState="))
      units.back().active = line.substr(12);
    else if (line.starts_with("UnitFileState="))
      units.back().enabled = line.substr(14);
  }
  for (std::size_t i = 0; i < std::min(units.size(), k_units.size()); ++i) {
    units[i].name = k_units.at(i);
    if (!units[i].load.empty() && units[i].load != "not-found")
      state.units.push_back(units[i]);
  }
  return {};
}

/// Returns the names in `wanted` of which a process runs, sorted.
std::vector<std::string> find_running(sys::System& system, const std::vector<std::string_view>& wanted) {
  std::set<std::string> names;
  for (auto& found : sys::find_processes(system, wanted, sys::Namespace::network))
    names.insert(std::move(found.name));
  return {names.begin(), names.end()};
}

} // namespace

bool nfs_conf_flag(sys::System& system, const std::string& section, const std::string& key, bool fallback) {
  constexpr auto k_off = std::to_array<std::string_view>({"0", "n", "no", "f", "false", "off"});
  const auto completed = system.run({.argv = {"nfsconf", "--get", section, key}, .deadline = k_conf_deadline});
  return completed && completed->ok() ? std::ranges::count(k_off, lower_case(trim(completed->out))) == 0 : fallback;
}

Result<ServerState> probe_server(sys::System& system) {
  ServerState state;
  state.systemd = system.identity().systemd;
  find_programs(system, state);
  TRY(read_kernel(system, state));
  if (!state.systemd)
    state.daemons = find_running(system, {k_daemons.begin(), k_daemons.end()});
  else if (auto asked = ask_systemd(system, state); !asked)
    return fail(asked.error());
  return state;
}

namespace {

constexpr std::chrono::milliseconds k_start_deadline{90'000}; // nfsd may wait for the grace period of a former server

plan::RunTool tool(Argv argv, Argv undo = {}) {
  return {.argv = std::move(argv), .undo = std::move(undo), .deadline = k_start_deadline};
}

const Unit* find_unit(const ServerState& state, std::initializer_list<std::string_view> names) {
  for (const auto name : names)
    for (const auto& unit : state.units)
      if (unit.name == name && unit.load == "loaded")
        return &unit;
  return nullptr;
}

const Unit* server_unit(const ServerState& state) {
  return find_unit(state, {"nfs-server.service", "nfs-kernel-server.service"});
}

/// Adds the step that enables and starts the unit, in one call that undo can take back exactly.
void add_unit(const Unit& unit, bool runs, std::string_view what, const std::string& group, plan::Plan& plan) {
  const bool enable = unit.enabled == "disabled";
  if (enable && !runs)
    plan.add(group, fmt::format("start {} now and at boot", what),
             tool({"systemctl", "enable", "--now", unit.name}, {"systemctl", "disable", "--now", unit.name}));
  else if (enable)
    plan.add(group, fmt::format("start {} at boot", what),
             tool({"systemctl", "enable", unit.name}, {"systemctl", "disable", unit.name}));
  else if (!runs) // the unit may be `active` without threads: it is oneshot, and somebody may have stopped the threads
    plan.add(group, fmt::format("start {}", what),
             tool({"systemctl", unit.active == "active" ? "restart" : "start", unit.name},
                  {"systemctl", "stop", unit.name}));
}

void add_units(const ServerState& state, const std::string& group, plan::Plan& plan) {
  const auto* const socket = find_unit(state, {"rpcbind.socket"});
  const auto* const service = find_unit(state, {"rpcbind.service"});
  const auto* const rpcbind = socket != nullptr ? socket : service;
  const bool answers =
      (socket != nullptr && socket->active == "active") || (service != nullptr && service->active == "active");
  if (state.version3 && rpcbind == nullptr)
    plan.notes.emplace_back("rpcbind is masked or has no unit: only clients of NFS version 4 can mount");
  else if (state.version3)
    add_unit(*rpcbind, answers, "the portmapper", group, plan);
  if (const auto* const server = server_unit(state))
    add_unit(*server, state.running(), "the NFS server", group, plan);
  const auto* const mountd = find_unit(state, {"nfs-mountd.service"}); // starts with the server, but may end alone
  if (mountd != nullptr && state.running() && mountd->active != "active")
    add_unit(*mountd, false, "what answers who may mount what", group, plan);
}

bool is_missing(const ServerState& state, std::string_view program) {
  return std::ranges::count(state.missing, program) > 0;
}

/// A command that starts a part of the server, if it is needed. Daemons put themselves into the background.
struct Start {
  bool needed;
  std::string_view why;
  Argv argv, undo = {};
};

void add_processes(const ServerState& state, const std::string& group, plan::Plan& plan) {
  const auto stopped = [&](std::string_view daemon) { return std::ranges::count(state.daemons, daemon) == 0; };
  const bool down = !state.running();
  const bool exportd = !state.version3 && is_missing(state, "rpc.mountd");
  const std::string mountd = exportd ? "nfsv4.exportd" : "rpc.mountd";
  // The order matters: the pipes and nfsdcld come well before rpc.nfsd, or a grace period of 10 s may delay the start.
  for (const auto& start : std::vector<Start>{
           {!state.nfsd_mounted, "the kernel server's control files", {"mount", "-t", "nfsd", "nfsd", "/proc/fs/nfsd"}},
           {down && !state.pipefs_mounted,
            "the kernel's pipes to the NFS daemons",
            {"mount", "-t", "rpc_pipefs", "-o", "X-mount.mkdir", "sunrpc", "/run/rpc_pipefs"}},
           {down && stopped("nfsdcld"), "remembers clients over a restart of the server", {"nfsdcld"}},
           {state.version3 && stopped("rpcbind"), "the portmapper, which NFS version 3 needs", {"rpcbind", "-w"}},
           {state.version3 && stopped("rpc.statd"), "locks of NFS version 3", {"rpc.statd"}},
           {down, "start the NFS server", {"rpc.nfsd", "8"}, {"rpc.nfsd", "0"}},
           {stopped("nfsv4.exportd") && stopped(mountd), "answers who may mount what", {mountd}},
       })
    if (start.needed)
      plan.add(group, std::string(start.why), tool(start.argv, start.undo));
}

tl::unexpected<Error> not_installed(std::string message, std::string_view debian, std::string_view rhel) {
  return fail(
      ErrorCode::not_found, std::move(message),
      fmt::format("run `apt-get install {}` (Debian, Ubuntu) or `dnf install {}` (RHEL, Fedora)", debian, rhel));
}

/// True for a program that a server of only NFS version 4 does not need: rpcbind, and rpc.mountd if nfsv4.exportd is
/// installed.
bool is_for_version3(const ServerState& state, std::string_view program) {
  return program == "rpcbind" || (program == "rpc.mountd" && !is_missing(state, "nfsv4.exportd"));
}

} // namespace

Result<void> check_installed(const ServerState& state) {
  for (const std::string_view program : {"exportfs", "rpc.nfsd", "rpc.mountd", "rpcbind"})
    if (is_missing(state, program) && (state.version3 || !is_for_version3(state, program)))
      return not_installed(fmt::format("`{}` is not installed on this host", program),
                           program == "rpcbind" ? "rpcbind" : "nfs-kernel-server",
                           program == "rpcbind" ? "rpcbind" : "nfs-utils");
  if (!state.systemd || state.running() || server_unit(state) != nullptr)
    return {};
  for (const auto& unit : state.units)
    if (unit.load == "masked" && unit.name.starts_with("nfs-"))
      return fail(ErrorCode::failed, fmt::format("`{}` is masked, so the NFS server cannot be started", unit.name),
                  fmt::format("run `systemctl unmask {}`", unit.name));
  return not_installed("systemd knows neither `nfs-server` nor `nfs-kernel-server`", "nfs-kernel-server", "nfs-utils");
}

Diagnoses diagnose_server(const ServerState& state) {
  if (!state.visible)
    return {};
  const auto runs = [&](std::initializer_list<std::string_view> units, std::string_view daemon) {
    return std::ranges::count(state.daemons, daemon) > 0 || std::ranges::any_of(state.units, [&](const Unit& unit) {
             return unit.active == "active" && std::ranges::count(units, std::string_view(unit.name)) > 0;
           });
  };
  const auto problem = [](Severity severity, std::string what, std::string hint) {
    return Diagnoses{{severity, "SF146", "nfsd", std::move(what), std::move(hint), ""}};
  };
  // Where systemd has no unit for a program, or a masked one, the administrator has decided that it shall not run.
  const auto should_run = [&](std::initializer_list<std::string_view> units) {
    return !state.systemd || find_unit(state, units) != nullptr;
  };
  if (!state.running())
    return problem(Severity::error, "the NFS server of this host does not run: its clients hang until it does",
                   state.systemd ? "`systemctl start nfs-server`; `systemctl status nfs-server` has why it ended"
                                 : "start it: `rpc.nfsd 8`");
  if (should_run({"nfs-mountd.service"}) && !runs({"nfs-mountd.service"}, "rpc.mountd") && !runs({}, "nfsv4.exportd"))
    return problem(
        Severity::error,
        "rpc.mountd does not run: nothing new can be mounted, and the kernel's answers run out after a while",
        state.systemd ? "`systemctl start nfs-mountd`" : "start it: `rpc.mountd`");
  if (state.version3 && should_run({"rpcbind.socket", "rpcbind.service"}) &&
      !runs({"rpcbind.socket", "rpcbind.service"}, "rpcbind"))
    return problem(Severity::warning, "rpcbind does not run: no client of NFS version 3 can mount",
                   state.systemd ? "`systemctl start rpcbind.socket`, or `vers3=n` in /etc/nfs.conf"
                                 : "start it: `rpcbind -w`, or write `vers3=n` to /etc/nfs.conf");
  if (state.version3 && should_run({"rpc-statd.service"}) && !runs({"rpc-statd.service"}, "rpc.statd"))
    return problem(Severity::warning, "rpc.statd does not run: clients of NFS version 3 get no locks",
                   state.systemd ? "`systemctl start rpc-statd`" : "start it: `rpc.statd`");
  return {};
}

void add_server_steps(const ServerState& state, const std::string& group, plan::Plan& plan) {
  if (!state.visible)
    plan.notes.emplace_back("whether the NFS server runs can only be seen by root; it would be started if it does not");
  else if (state.systemd)
    add_units(state, group, plan);
  else
    add_processes(state, group, plan);
}

} // namespace sharefs::exports
