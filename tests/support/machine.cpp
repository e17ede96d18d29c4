#include "support/machine.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <stdexcept>

namespace sharefs::test {
namespace {

using nlohmann::json;

/// The enumerator of that name, the last one being `last`.
template <class Enum> Enum enum_from(const json& document, Enum last) {
  const auto name = document.get<std::string>();
  for (int i = 0; i <= static_cast<int>(last); ++i)
    if (to_string(static_cast<Enum>(i)) == name)
      return static_cast<Enum>(i);
  throw std::invalid_argument("unknown value `" + name + "`");
}

/// A key that nobody reads is a typing mistake, and the test would not test what it says.
void check_keys(const json& object, std::string_view what, const std::vector<std::string>& known) {
  for (const auto& [key, value] : object.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw std::invalid_argument("unknown key `" + key + "` in " + std::string(what));
}

template <class T> void read(const json& document, const char* key, T& value) {
  if (document.contains(key))
    value = document.at(key).get<T>();
}

template <class Duration> void read_duration(const json& document, const char* key, Duration& value) {
  value = Duration(document.value(key, value.count()));
}

template <class T> std::vector<T> read_all(const json& document, const char* key, T (*read_one)(const json&)) {
  std::vector<T> values;
  for (const auto& one : document.value(key, json::array()))
    values.push_back(read_one(one));
  return values;
}

template <class T>
std::map<std::string, T> read_by_name(const json& document, const char* key, T (*read_one)(const json&)) {
  std::map<std::string, T> values;
  const json named = document.value(key, json::object());
  for (const auto& [name, one] : named.items())
    values.emplace(name, read_one(one));
  return values;
}

std::chrono::system_clock::time_point time_from(const std::string& text) {
  std::tm fields{};
  const char* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &fields);
  if (end == nullptr || *end != '\0')
    throw std::invalid_argument("`" + text + "` is not a time (2026-01-01T00:00:00Z)");
  return std::chrono::system_clock::from_time_t(::timegm(&fields));
}

sys::MountTable table_from(const std::string& mountinfo) {
  auto table = sys::MountTable::parse(mountinfo);
  if (!table)
    throw std::invalid_argument(table.error().message);
  return *table;
}

std::uint32_t mode_from(const json& document) {
  const auto mode = parse_mode(document.get<std::string>());
  if (!mode)
    throw std::invalid_argument("`" + document.get<std::string>() + "` is not an octal mode");
  return *mode;
}

Error error_from(const json& document) {
  return {error_code_from(document.at("code").get<std::string>()), document.at("message").get<std::string>(),
          document.value("hint", ""), document.value("context", "")};
}

std::optional<Error> error_of(const json& document) {
  const json error = document.value("error", json());
  return error.is_null() ? std::nullopt : std::optional(error_from(error));
}

sys::User user_from(const json& document) {
  sys::User user;
  user.name = document.at("name").get<std::string>();
  user.uid = document.at("uid").get<uid_t>();
  user.gid = document.value("gid", user.uid);
  user.groups = document.value("groups", std::vector<gid_t>{user.gid});
  user.home = document.value("home", "/home/" + user.name);
  return user;
}

sys::Identity identity_from(const json& document) {
  check_keys(document, "identity",
             {"hostname", "boot_id", "uid", "gid", "user", "home", "pid", "systemd", "addresses"});
  sys::Identity identity;
  identity.hostname = document.value("hostname", "node1");
  identity.boot_id = document.value("boot_id", "00000000-0000-0000-0000-000000000000");
  identity.uid = document.value("uid", uid_t(0));
  identity.gid = document.value("gid", gid_t(identity.uid));
  identity.user = document.value("user", identity.uid == 0 ? "root" : "user");
  identity.home = document.value("home", identity.uid == 0 ? "/root" : "/home/" + identity.user);
  identity.pid = document.value("pid", 1000);
  identity.systemd = document.value("systemd", false);
  identity.addresses = document.value("addresses", std::vector<std::string>{});
  return identity;
}

std::vector<Answer> answers_from(const json& document, const char* kind, const std::vector<std::string>& question) {
  std::vector<std::string> known{"exit_code", "out",   "err",       "timed_out", "took_ms",
                                 "error",     "times", "mountinfo", "files"};
  known.insert(known.end(), question.begin(), question.end());
  std::vector<Answer> answers;
  for (const json& entry : document.value(kind, json::array())) {
    check_keys(entry, kind, known);
    Answer answer;
    for (const std::string& key : question)
      if (entry.contains(key))
        answer.question[key] = entry.at(key);
    if (std::string_view(kind) == "run")
      answer.question["isolated"] = entry.value("isolated", false);
    sys::Completed& completed = answer.completed;
    read(entry, "timed_out", completed.timed_out);
    completed.exit_code = entry.value("exit_code", completed.timed_out ? -1 : 0);
    read(entry, "out", completed.out);
    read(entry, "err", completed.err);
    read_duration(entry, "took_ms", completed.took);
    answer.error = error_of(entry);
    if (entry.contains("mountinfo"))
      answer.mounts = table_from(entry.at("mountinfo"));
    read(entry, "files", answer.files);
    read(entry, "times", answer.times);
    answers.push_back(std::move(answer));
  }
  return answers;
}

sys::Entry entry_from(const json& document) {
  check_keys(document, "entries",
             {"hung",  "kind",    "error_number", "detail", "resolved", "ancestor", "link_target", "mode",
              "uid",   "gid",     "size",         "device", "inode",    "links",    "mtime",       "writable",
              "names", "content", "space",        "mount",  "fs_type",  "shared"});
  sys::Entry entry;
  if (document.value("hung", false)) {
    entry.error_number = ETIMEDOUT;
    entry.detail = "no answer within 3 s";
  } else {
    entry.kind = enum_from(document.at("kind"), sys::EntryKind::unknown);
  }
  if (entry.exists())
    entry.mode = entry.kind == sys::EntryKind::directory ? 0755 : 0644;
  read(document, "error_number", entry.error_number);
  read(document, "detail", entry.detail);
  read(document, "resolved", entry.resolved);
  read(document, "ancestor", entry.ancestor);
  read(document, "link_target", entry.link_target);
  if (document.contains("mode"))
    entry.mode = mode_from(document.at("mode"));
  read(document, "uid", entry.uid);
  read(document, "gid", entry.gid);
  read(document, "content", entry.content);
  entry.size = document.value("size", static_cast<std::uint64_t>(entry.content.size()));
  read(document, "device", entry.device);
  read(document, "inode", entry.inode);
  read(document, "links", entry.links);
  read(document, "mtime", entry.mtime);
  entry.writable = document.value("writable", true);
  read(document, "names", entry.names);
  if (document.contains("space")) {
    const json& space = document.at("space");
    check_keys(space, "space", {"latency_us", "size_bytes", "free_bytes", "files", "free_files"});
    entry.space.emplace();
    read_duration(space, "latency_us", entry.space->latency);
    read(space, "size_bytes", entry.space->size_bytes);
    read(space, "free_bytes", entry.space->free_bytes);
    read(space, "files", entry.space->files);
    read(space, "free_files", entry.space->free_files);
  }
  read(document, "mount", entry.mount);
  read(document, "fs_type", entry.fs_type);
  read(document, "shared", entry.shared);
  return entry;
}

sys::StageResult stage_from(const json& document) {
  sys::StageResult stage;
  stage.stage = enum_from(document.at("stage"), sys::ProbeStage::access);
  stage.outcome = enum_from(document.at("outcome"), sys::StageOutcome::skipped);
  read_duration(document, "round_trip_us", stage.round_trip);
  read(document, "detail", stage.detail);
  read(document, "cause", stage.cause);
  read(document, "hint", stage.hint);
  return stage;
}

sys::ExportListing listing_from(const json& document) {
  return {document.at("directory"), document.value("clients", std::vector<std::string>{})};
}

sys::ExportAccess access_from(const json& document) {
  return {document.at("directory"), document.at("allowed"), document.value("reason", ""), document.value("address", ""),
          document.value("version", 0)};
}

sys::NfsProbe nfs_from(const json& document) {
  sys::NfsProbe probe;
  read(document, "host", probe.host);
  read(document, "address", probe.address);
  read(document, "v3", probe.v3);
  read(document, "v4", probe.v4);
  read(document, "v3_unknown", probe.v3_unknown);
  read(document, "v4_unknown", probe.v4_unknown);
  read_duration(document, "took_ms", probe.took);
  probe.stages = read_all(document, "stages", stage_from);
  probe.exports = read_all(document, "exports", listing_from);
  probe.access = read_all(document, "access", access_from);
  return probe;
}

void read_machine(const json& document, Machine& machine) {
  if (!document.is_object())
    throw std::invalid_argument("it is no JSON object");
  check_keys(document, "the machine",
             {"identity", "now", "mountinfo", "users", "run", "exec", "mount", "unmount", "nfs", "entries"});
  machine.identity = identity_from(document.value("identity", json::object()));
  if (document.contains("now"))
    machine.now = time_from(document.at("now"));
  if (document.contains("mountinfo"))
    machine.mounts = table_from(document.at("mountinfo"));
  machine.users = read_all(document, "users", user_from);
  machine.run = answers_from(document, "run", {"argv", "isolated"});
  machine.exec = answers_from(document, "exec", {"argv"});
  machine.mount = answers_from(document, "mount", {"source", "target", "fs_type", "options"});
  machine.unmount = answers_from(document, "unmount", {"target", "force", "lazy"});
  machine.nfs = read_by_name(document, "nfs", nfs_from);
  machine.entries = read_by_name(document, "entries", entry_from);
}

} // namespace

Machine::Machine()
    : identity(identity_from(json::object())), now(time_from("2026-01-01T00:00:00Z")),
      mounts(table_from("1 0 8:1 / / rw - ext4 /dev/sda1 rw\n")) {}

Result<Machine> Machine::from_json(const std::string& text) {
  try {
    Machine machine;
    read_machine(json::parse(text, nullptr, true, /*ignore_comments=*/true), machine);
    return machine;
  } catch (const std::exception& exception) {
    return fail(ErrorCode::config, std::string("this describes no machine: ") + exception.what());
  }
}

void Machine::add_mount(const std::string& source, const std::string& target, const std::string& fs_type,
                        const std::string& options) {
  auto table = mounts.entries();
  if (fs_type == sys::k_remount) {
    for (auto& one : table)
      if (one.target == target) {
        one.options = (sys::restrictions_in(options).starts_with("ro") ? "" : "rw,") + options;
        one.super_options =
            one.super_options.starts_with("ro,") ? "rw" + one.super_options.substr(2) : one.super_options;
      }
    mounts = sys::MountTable(table);
    return;
  }
  sys::MountEntry entry;
  for (const auto& other : table)
    entry.id = std::max(entry.id, other.id);
  ++entry.id;
  const auto* above = mounts.owner_of(target);
  entry.parent = above == nullptr ? 0 : above->id;
  entry.minor = static_cast<unsigned>(entry.id);
  entry.root = "/";
  entry.target = target;
  entry.options = "rw,relatime";
  if (const auto* owner = mounts.owner_of(source); fs_type == sys::k_bind && owner != nullptr) {
    auto bound = *owner;
    bound.id = entry.id;
    bound.parent = entry.parent;
    bound.root = normalize_path(owner->root + "/" + source.substr(owner->target.size()));
    bound.target = target;
    table.push_back(std::move(bound));
    mounts = sys::MountTable(std::move(table));
    return;
  }
  entry.source = source;
  entry.super_options = options.empty() ? "rw" : options;
  // mount(8) names the helper, the kernel the protocol.
  const bool version_3 = options.find("vers=3") != std::string::npos;
  entry.fs_type = fs_type == "nfs" && !version_3 ? "nfs4" : fs_type;
  table.push_back(std::move(entry));
  mounts = sys::MountTable(std::move(table));
}

void Machine::remove_mount(const std::string& target) {
  const auto* topmost = mounts.at(target);
  if (topmost == nullptr)
    return;
  auto table = mounts.entries();
  std::erase_if(table, [id = topmost->id](const auto& entry) { return entry.id == id; });
  mounts = sys::MountTable(std::move(table));
}

sys::NfsProbe nfs_server(const std::string& host, const std::string& directory, std::vector<std::string> clients) {
  sys::NfsProbe probe;
  probe.host = probe.address = host;
  for (int stage = 0; stage <= static_cast<int>(sys::ProbeStage::access); ++stage)
    probe.stages.push_back(
        {static_cast<sys::ProbeStage>(stage), sys::StageOutcome::ok, std::chrono::microseconds(100), "", "", ""});
  probe.v3 = probe.v4 = true;
  probe.exports = {{directory, std::move(clients)}};
  probe.access = {{directory, true, ""}};
  probe.took = std::chrono::milliseconds(3);
  return probe;
}

sys::NfsProbe dead_nfs_server(const std::string& host) {
  sys::NfsProbe probe = nfs_server(host, "", {});
  probe.address.clear();
  probe.v3 = probe.v4 = false;
  probe.exports.clear();
  probe.access.clear();
  for (auto& stage : probe.stages)
    if (stage.stage != sys::ProbeStage::resolve)
      stage.outcome = sys::StageOutcome::skipped;
  probe.stages[1] = {sys::ProbeStage::connect, sys::StageOutcome::failed, std::chrono::microseconds(100),
                     "no answer within 5.0 s", "the server is off",       "see if it is on"};
  probe.took = std::chrono::seconds(5);
  return probe;
}

} // namespace sharefs::test
