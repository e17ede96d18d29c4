#include "base/path.hpp"
#include "base/text.hpp"
#include "exports/server.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <set>
#include <span>

namespace sharefs::exports {

namespace {

constexpr std::array k_server_programs{"exportfs", "rpc.nfsd", "rpc.mountd", "nfsv4.exportd", "rpcbind"};
constexpr std::array k_units{"nfs-server.service", "nfs-kernel-server.service", "nfs-mountd.service", "rpcbind.socket",
                             "rpcbind.service"};
/// comm of /proc is cut at 15 bytes; these are shorter.
constexpr std::array k_daemons{"rpcbind", "rpc.statd", "rpc.mountd", "nfsdcld", "nfsv4.exportd"};
constexpr std::size_t k_text_limit = 65536;

sys::EntryQuery content_of(std::string path) {
  return {.path = std::move(path), .follow = true, .read_bytes = k_text_limit};
}

void find_programs(sys::System& system, ServerState& state) {
  sys::EntryRequest request;
  for (const auto* program : k_server_programs)
    for (const auto* directory : {"/usr/sbin/", "/sbin/"}) // two directories on systems without merged /usr
      request.queries.push_back({.path = std::string(directory) + program, .follow = true});
  const auto entries = system.entries(request);
  for (std::size_t i = 0; i < k_server_programs.size(); ++i)
    if (entries[2 * i].kind != sys::EntryKind::file && entries[2 * i + 1].kind != sys::EntryKind::file)
      state.missing.emplace_back(k_server_programs.at(i));
}

/// `vers3=` of the section [nfsd] in nfs.conf(5), which rpc.nfsd and rpc.mountd read; nullopt: not set.
std::optional<bool> version3_of(std::string_view text) {
  std::optional<bool> version3;
  bool in_section = false;
  for (const auto& line : split_lines(text)) {
    std::string word; // without blanks, in lower case
    for (const char byte : line.substr(0, line.find_first_of("#;")))
      if (byte != ' ' && byte != '\t' && byte != '\r')
        word += byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
    if (word.starts_with('['))
      in_section = word == "[nfsd]";
    else if (in_section && word.starts_with("vers3="))
      version3 = !std::ranges::count(std::array{"0", "n", "no", "f", "false", "off"}, word.substr(6));
  }
  return version3;
}

/// By the configuration: what a server that is started would offer.
bool configured_version3(sys::System& system) {
  sys::EntryRequest request;
  for (const auto* path : {"/usr/etc/nfs.conf", "/etc/nfs.conf"})
    request.queries.push_back(content_of(path));
  for (const auto* directory : {"/usr/etc/nfs.conf.d", "/etc/nfs.conf.d"})
    for (const auto& name : system.entry({.path = directory, .follow = true, .list = true}).names)
      if (name.ends_with(".conf"))
        request.queries.push_back(content_of(std::string(directory) + "/" + name));
  bool version3 = true;
  for (const auto& entry : system.entries(request)) // the last one counts
    version3 = version3_of(entry.content).value_or(version3);
  return version3;
}

Result<void> read_kernel(sys::System& system, ServerState& state) {
  const auto mounts = system.mounts();
  if (!mounts)
    return fail(mounts.error());
  const auto* const nfsd = mounts->at("/proc/fs/nfsd");
  state.nfsd_mounted = nfsd != nullptr && nfsd->fs_type == "nfsd";
  state.pipefs_mounted = std::any_of(mounts->entries().begin(), mounts->entries().end(),
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
    state.version3 = configured_version3(system);
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

/// Which of `wanted` run, by /proc/PID/comm, which never hangs; only processes of our network namespace, because /proc
/// also shows the daemons of containers. Sorted.
std::vector<std::string> running(sys::System& system, std::span<const char* const> wanted) {
  const auto own = system.entry({.path = "/proc/self/ns/net"}).link_target;
  sys::EntryRequest processes;
  for (const auto& name : system.entry({.path = "/proc", .list = true}).names)
    if (is_number(name))
      processes.queries.push_back(content_of("/proc/" + name + "/comm"));
  sys::EntryRequest namespaces;
  std::vector<std::string> found;
  for (const auto& entry : system.entries(processes)) {
    const auto name = std::string(trim(entry.content));
    if (std::ranges::find(wanted, name) == wanted.end())
      continue;
    found.push_back(name);
    namespaces.queries.push_back({.path = parent_path(entry.path) + "/ns/net"});
  }
  const auto spaces = system.entries(namespaces);
  std::set<std::string> names;
  for (std::size_t i = 0; i < found.size(); ++i)
    if (spaces[i].link_target == own)
      names.insert(found[i]);
  return {names.begin(), names.end()};
}

} // namespace

Result<ServerState> probe_server(sys::System& system) {
  ServerState state;
  state.systemd = system.identity().systemd;
  find_programs(system, state);
  if (auto read = read_kernel(system, state); !read)
    return fail(read.error());
  if (!state.systemd)
    state.daemons = running(system, k_daemons);
  else if (auto asked = ask_systemd(system, state); !asked)
    return fail(asked.error());
  return state;
}

Diagnoses check_kerberos(sys::System& system, const std::vector<Export>& exports) {
  const auto asks = [](const Export& one) {
    return std::ranges::any_of(one.settings.security, [](const Flavour& two) { return two.name.starts_with("krb5"); });
  };
  const auto found = std::ranges::find_if(exports, asks);
  if (found == exports.end())
    return {};
  Diagnoses lacking;
  const auto lacks = [&](std::string_view what, std::string hint) {
    lacking.push_back({Severity::warning, "SF155", found->directory,
                       fmt::format("`sec=krb5` needs {} on this host: clients cannot mount it by Kerberos", what),
                       std::move(hint), ""});
  };
  if (!system.entry({.path = "/etc/krb5.keytab", .follow = true}).exists())
    lacks("/etc/krb5.keytab", "join the realm, or `kadmin ktadd nfs/HOST` there");
  constexpr std::array k_gss{"gssproxy", "rpc.svcgssd"};
  if (running(system, k_gss).empty())
    lacks("gssproxy or rpc.svcgssd running", "run `systemctl start gssproxy` (package gssproxy)");
  return lacking;
}

} // namespace sharefs::exports
