#include "sys/json.hpp"

#include "base/text.hpp"

#include <array>
#include <ctime>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace sharefs {

using nlohmann::json;

void to_json(json& document, const Error& error) {
  document = {{"code", to_string(error.code)}, {"message", error.message}};
  if (!error.hint.empty())
    document["hint"] = error.hint;
  if (!error.context.empty())
    document["context"] = error.context;
}

void from_json(const json& document, Error& error) {
  error.code = error_code_from(document.at("code").get<std::string>());
  error.message = document.at("message").get<std::string>();
  error.hint = document.value("hint", "");
  error.context = document.value("context", "");
}

namespace sys {
namespace {

/// The enumerator of that name, among the first `count` ones. Throws for an unknown name: a script's typing mistake.
template <class Enum> Enum enum_from(const json& document, int count) {
  const auto name = document.get<std::string>();
  for (int i = 0; i < count; ++i)
    if (to_string(static_cast<Enum>(i)) == name)
      return static_cast<Enum>(i);
  throw std::invalid_argument("unknown value `" + name + "`");
}

template <class Duration> Duration duration(const json& document, const char* key) {
  return Duration(document.value(key, typename Duration::rep(0)));
}

/// Only what differs from the value of an empty struct stands in the document.
template <class T> void put(json& document, const char* key, const T& value) {
  if (value != T())
    document[key] = value;
}

} // namespace

json bytes_to_json(const std::string& bytes) {
  if (is_utf8(bytes))
    return bytes;
  std::string text;
  for (const char byte : bytes) {
    const auto code = static_cast<unsigned char>(byte);
    if (code < 0x80) {
      text += byte;
    } else {
      text += static_cast<char>(0xC0 | (code >> 6));
      text += static_cast<char>(0x80 | (code & 0x3F));
    }
  }
  return {{"latin1", text}};
}

std::string bytes_from_json(const json& document) {
  if (document.is_string())
    return document.get<std::string>();
  const auto text = document.at("latin1").get<std::string>();
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    if (first >= 0x80 && i + 1 < text.size()) {
      const auto second = static_cast<unsigned char>(text[++i]);
      bytes += static_cast<char>(((first & 0x03) << 6) | (second & 0x3F));
    } else {
      bytes += text[i];
    }
  }
  return bytes;
}

std::string format_time(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm fields{};
  ::gmtime_r(&seconds, &fields);
  std::array<char, 32> buffer{};
  std::strftime(buffer.data(), buffer.size(), "%Y-%m-%dT%H:%M:%SZ", &fields);
  return buffer.data();
}

std::chrono::system_clock::time_point parse_time(const std::string& text) {
  std::tm fields{};
  const char* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &fields);
  if (end == nullptr || *end != '\0')
    throw std::invalid_argument("`" + text + "` is not a time (2026-01-01T00:00:00Z)");
  return std::chrono::system_clock::from_time_t(::timegm(&fields));
}

void to_json(json& document, const User& user) {
  document = {{"name", user.name}, {"uid", user.uid}, {"gid", user.gid}, {"groups", user.groups}, {"home", user.home}};
}

void from_json(const json& document, User& user) {
  user.name = document.at("name").get<std::string>();
  user.uid = document.at("uid").get<uid_t>();
  user.gid = document.value("gid", user.uid);
  user.groups = document.value("groups", std::vector<gid_t>{user.gid});
  user.home = document.value("home", "/home/" + user.name);
}

void to_json(json& document, const Identity& identity) {
  document = {{"hostname", identity.hostname}, {"boot_id", identity.boot_id}, {"uid", identity.uid},
              {"gid", identity.gid},           {"user", identity.user},       {"home", identity.home},
              {"pid", identity.pid},           {"systemd", identity.systemd}, {"addresses", identity.addresses}};
}

void from_json(const json& document, Identity& identity) {
  identity.hostname = document.value("hostname", "node1");
  identity.boot_id = document.value("boot_id", "00000000-0000-0000-0000-000000000000");
  identity.uid = document.value("uid", uid_t(0));
  identity.gid = document.value("gid", gid_t(identity.uid));
  identity.user = document.value("user", identity.uid == 0 ? "root" : "user");
  identity.home = document.value("home", identity.uid == 0 ? "/root" : "/home/" + identity.user);
  identity.pid = document.value("pid", 1000);
  identity.systemd = document.value("systemd", false);
  identity.addresses = document.value("addresses", std::vector<std::string>{});
}

void to_json(json& document, const Completed& completed) {
  document = {
      {"exit_code", completed.exit_code}, {"out", bytes_to_json(completed.out)}, {"err", bytes_to_json(completed.err)}};
  put(document, "timed_out", completed.timed_out);
  put(document, "unreaped", completed.unreaped);
  put(document, "took_ms", completed.took.count());
}

void from_json(const json& document, Completed& completed) {
  completed.timed_out = document.value("timed_out", false);
  completed.unreaped = document.value("unreaped", false);
  completed.exit_code = document.value("exit_code", completed.timed_out ? -1 : 0);
  completed.out = document.contains("out") ? bytes_from_json(document.at("out")) : "";
  completed.err = document.contains("err") ? bytes_from_json(document.at("err")) : "";
  completed.took = duration<std::chrono::milliseconds>(document, "took_ms");
}

void to_json(json& document, const PathProbe& probe) {
  document = {{"health", to_string(probe.health)}};
  put(document, "error_number", probe.error_number);
  put(document, "detail", probe.detail);
  put(document, "latency_us", probe.latency.count());
  put(document, "size_bytes", probe.size_bytes);
  put(document, "free_bytes", probe.free_bytes);
  put(document, "files", probe.files);
  put(document, "free_files", probe.free_files);
}

void from_json(const json& document, PathProbe& probe) {
  probe.health = enum_from<PathHealth>(document.at("health"), static_cast<int>(PathHealth::failed) + 1);
  probe.error_number = document.value("error_number", 0);
  probe.detail = document.value("detail", "");
  probe.latency = duration<std::chrono::microseconds>(document, "latency_us");
  probe.size_bytes = document.value("size_bytes", std::uint64_t(0));
  probe.free_bytes = document.value("free_bytes", std::uint64_t(0));
  probe.files = document.value("files", std::uint64_t(0));
  probe.free_files = document.value("free_files", std::uint64_t(0));
}

void to_json(json& document, const PathFact& fact) {
  document = {{"kind", to_string(fact.kind)}};
  put(document, "error_number", fact.error_number);
  if (!fact.link_target.empty())
    document["link_target"] = bytes_to_json(fact.link_target);
  if (fact.kind != PathKind::missing && fact.kind != PathKind::unknown)
    document["mode"] = format_mode(fact.mode);
  put(document, "uid", fact.uid);
  put(document, "gid", fact.gid);
  put(document, "size", fact.size);
  put(document, "device", fact.device);
  put(document, "inode", fact.inode);
  put(document, "links", fact.links);
  put(document, "mtime", fact.mtime);
  if (!fact.content.empty())
    document["content"] = bytes_to_json(fact.content);
  for (const std::string& name : fact.entries)
    document["entries"].push_back(bytes_to_json(name));
}

void from_json(const json& document, PathFact& fact) {
  fact.kind = enum_from<PathKind>(document.at("kind"), static_cast<int>(PathKind::unknown) + 1);
  fact.error_number = document.value("error_number", 0);
  fact.link_target = document.contains("link_target") ? bytes_from_json(document.at("link_target")) : "";
  fact.mode = fact.kind == PathKind::directory ? 0755 : 0644;
  if (document.contains("mode")) {
    const auto text = document.at("mode").get<std::string>();
    const auto mode = parse_mode(text);
    if (!mode)
      throw std::invalid_argument("`" + text + "` is not an octal mode");
    fact.mode = *mode;
  }
  fact.uid = document.value("uid", 0U);
  fact.gid = document.value("gid", 0U);
  fact.device = document.value("device", std::uint64_t(0));
  fact.inode = document.value("inode", std::uint64_t(0));
  fact.links = document.value("links", std::uint64_t(0));
  fact.mtime = document.value("mtime", std::int64_t(0));
  fact.content = document.contains("content") ? bytes_from_json(document.at("content")) : "";
  fact.size = document.value("size", static_cast<std::uint64_t>(fact.content.size()));
  fact.entries.clear();
  if (document.contains("entries"))
    for (const auto& name : document.at("entries"))
      fact.entries.push_back(bytes_from_json(name));
  if (fact.kind == PathKind::missing || fact.kind == PathKind::unknown)
    fact.mode = 0;
}

// ---- the NFS probe ----

namespace {

json stage_to_json(const StageResult& stage) {
  json result = {{"stage", to_string(stage.stage)}, {"outcome", to_string(stage.outcome)}};
  put(result, "round_trip_us", stage.round_trip.count());
  put(result, "detail", stage.detail);
  put(result, "cause", stage.cause);
  put(result, "hint", stage.hint);
  return result;
}

StageResult stage_from_json(const json& document) {
  StageResult stage;
  stage.stage = enum_from<ProbeStage>(document.at("stage"), static_cast<int>(ProbeStage::access) + 1);
  stage.outcome = enum_from<StageOutcome>(document.at("outcome"), static_cast<int>(StageOutcome::skipped) + 1);
  stage.round_trip = duration<std::chrono::microseconds>(document, "round_trip_us");
  stage.detail = document.value("detail", "");
  stage.cause = document.value("cause", "");
  stage.hint = document.value("hint", "");
  return stage;
}

} // namespace

void to_json(json& document, const NfsProbe& probe) {
  document = {{"host", probe.host}, {"address", probe.address}, {"v3", probe.v3}, {"v4", probe.v4}};
  for (const StageResult& stage : probe.stages)
    document["stages"].push_back(stage_to_json(stage));
  for (const ExportListing& one : probe.exports)
    document["exports"].push_back({{"directory", one.directory}, {"clients", one.clients}});
  for (const ExportAccess& one : probe.access)
    document["access"].push_back({{"directory", one.directory}, {"allowed", one.allowed}, {"reason", one.reason}});
  put(document, "took_ms", probe.took.count());
}

void from_json(const json& document, NfsProbe& probe) {
  probe = NfsProbe();
  probe.host = document.value("host", "");
  probe.address = document.value("address", "");
  probe.v3 = document.value("v3", false);
  probe.v4 = document.value("v4", false);
  probe.took = duration<std::chrono::milliseconds>(document, "took_ms");
  if (document.contains("stages"))
    for (const auto& stage : document.at("stages"))
      probe.stages.push_back(stage_from_json(stage));
  if (document.contains("exports"))
    for (const auto& one : document.at("exports"))
      probe.exports.push_back(
          {one.at("directory").get<std::string>(), one.value("clients", std::vector<std::string>{})});
  if (document.contains("access"))
    for (const auto& one : document.at("access"))
      probe.access.push_back(
          {one.at("directory").get<std::string>(), one.at("allowed").get<bool>(), one.value("reason", "")});
}

} // namespace sys
} // namespace sharefs
