#include "base/text.hpp"
#include "base/try.hpp"
#include "exports/server.hpp"
#include "sys/find_processes.hpp"

#include <algorithm>
#include <array>
#include <charconv>
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
  state.pipefs_mounted = std::any_of(mounts.entries().begin(), mounts.entries().end(),
                                     [](const sys::MountEntry& entry) { return entry.fs_type == "rpc_pipefs"; });
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
  std::size_t index = 0; // systemctl prints a paragraph per unit, in the given order; an alias has another Id
  Unit unit;
  const auto take = [&] {
    if (index < k_units.size() && !unit.load.empty()) {
      unit.name = k_units.at(index);
      if (unit.load != "not-found")
        state.units.push_back(unit);
    }
    ++index;
    unit = Unit{};
  };
  for (const auto& line : split_lines(completed.out)) {
    if (line.empty())
      take();
    else if (line.starts_with("LoadState="))
      unit.load = line.substr(10);
    else if (line.starts_with("ActiveState="))
      unit.active = line.substr(12);
    else if (line.starts_with("UnitFileState="))
      unit.enabled = line.substr(14);
  }
  take();
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

} // namespace sharefs::exports
