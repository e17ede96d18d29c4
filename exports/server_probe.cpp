#include "base/text.hpp"
#include "exports/server.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace sharefs::exports {

namespace {

using sys::PathFact;
using sys::PathQuery;

constexpr std::array k_programs{"exportfs", "rpc.nfsd", "rpc.mountd", "rpcbind"};
constexpr std::array k_units{"nfs-server.service", "nfs-kernel-server.service", "rpcbind.socket", "rpcbind.service"};
/// comm of /proc is cut at 15 bytes; these are shorter.
constexpr std::array k_daemons{"rpcbind", "rpc.statd", "rpc.mountd", "nfsdcld", "nfsv4.exportd"};

Result<std::vector<PathFact>> look(sys::System& system, std::vector<PathQuery> queries) {
  sys::InspectRequest request;
  request.queries = std::move(queries);
  return system.inspect(request);
}

PathQuery query(std::string path) {
  PathQuery one;
  one.path = std::move(path);
  return one;
}

PathQuery content_of(std::string path) {
  auto one = query(std::move(path));
  one.read_bytes = 4096;
  return one;
}

Result<void> find_programs(sys::System& system, ServerState& state) {
  std::vector<PathQuery> queries;
  for (const auto* program : k_programs)
    for (const auto* directory : {"/usr/sbin/", "/sbin/"}) { // two directories on systems without merged /usr
      queries.push_back(query(std::string(directory) + program));
      queries.back().follow = true;
    }
  const auto facts = look(system, std::move(queries));
  if (!facts)
    return fail(facts.error());
  for (std::size_t i = 0; i < k_programs.size(); ++i)
    if ((*facts)[2 * i].kind != sys::PathKind::file && (*facts)[2 * i + 1].kind != sys::PathKind::file)
      state.missing.emplace_back(k_programs.at(i));
  return {};
}

Result<void> read_kernel(sys::System& system, ServerState& state) {
  const auto mounts = system.mounts();
  if (!mounts)
    return fail(mounts.error());
  const auto* const nfsd = mounts->at("/proc/fs/nfsd");
  state.nfsd_mounted = nfsd != nullptr && nfsd->fs_type == "nfsd";
  state.pipefs_mounted = std::any_of(mounts->entries().begin(), mounts->entries().end(),
                                     [](const sys::MountEntry& entry) { return entry.fs_type == "rpc_pipefs"; });
  if (!state.nfsd_mounted)
    return {};
  const auto facts = look(system, {content_of("/proc/fs/nfsd/threads"), content_of("/proc/fs/nfsd/versions")});
  if (!facts)
    return fail(facts.error());
  state.visible = (*facts)[0].error_number == 0;
  const auto text = trim((*facts)[0].content);
  std::from_chars(text.data(), text.data() + text.size(), state.threads);
  const auto versions = split_words(trim((*facts)[1].content));
  state.version3 = std::find(versions.begin(), versions.end(), "-3") == versions.end();
  return {};
}

Result<void> ask_systemd(sys::System& system, ServerState& state) {
  sys::Command command;
  command.argv = {"systemctl", "show", "--property=Id,LoadState,ActiveState,UnitFileState"};
  command.argv.insert(command.argv.end(), k_units.begin(), k_units.end());
  const auto completed = system.run(command);
  if (!completed)
    return fail(completed.error());
  if (!completed->ok())
    return fail(ErrorCode::failed, "`systemctl show` failed: " + std::string(trim(completed->err)));
  std::size_t index = 0; // one paragraph per unit, in the order of the question; an alias answers with another Id
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
  for (const auto& line : split_lines(completed->out)) {
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

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char byte) { return byte >= '0' && byte <= '9'; });
}

/// Processes by /proc/PID/comm, which never hangs; only those of our network namespace, because /proc also shows the
/// daemons of containers.
Result<void> find_daemons(sys::System& system, ServerState& state) {
  auto list = query("/proc");
  list.list = true;
  const auto listed = look(system, {list, query("/proc/self/ns/net")});
  if (!listed)
    return fail(listed.error());
  std::vector<PathQuery> queries;
  for (const auto& name : listed->front().entries)
    if (is_number(name))
      queries.push_back(content_of("/proc/" + name + "/comm"));
  const auto names = look(system, queries);
  if (!names)
    return fail(names.error());
  std::vector<PathQuery> namespaces;
  std::vector<std::string> found;
  for (const auto& fact : *names) {
    const auto name = std::string(trim(fact.content));
    if (std::find(k_daemons.begin(), k_daemons.end(), name) == k_daemons.end())
      continue;
    found.push_back(name);
    namespaces.push_back(query(fact.path.substr(0, fact.path.rfind('/')) + "/ns/net"));
  }
  const auto spaces = look(system, namespaces);
  if (!spaces)
    return fail(spaces.error());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const bool ours = (*spaces)[i].link_target == (*listed)[1].link_target;
    if (ours && std::find(state.daemons.begin(), state.daemons.end(), found[i]) == state.daemons.end())
      state.daemons.push_back(found[i]);
  }
  std::sort(state.daemons.begin(), state.daemons.end());
  return {};
}

} // namespace

Result<ServerState> probe_server(sys::System& system) {
  ServerState state;
  state.systemd = system.identity().systemd;
  if (auto found = find_programs(system, state); !found)
    return fail(found.error());
  if (auto read = read_kernel(system, state); !read)
    return fail(read.error());
  if (auto asked = state.systemd ? ask_systemd(system, state) : find_daemons(system, state); !asked)
    return fail(asked.error());
  return state;
}

} // namespace sharefs::exports
