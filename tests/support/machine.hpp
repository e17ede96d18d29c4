#pragma once
// A machine that exists only in a test: a value, filled in by hand or read from JSON, that ScriptedSystem answers from.
#include "sys/system.hpp"

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::test {

/// What a call gets, `times` times; 0: as often as it is made.
struct Answer {
  nlohmann::json question = nlohmann::json::object(); ///< only these parts of the call are compared: argv, target, ...
  sys::Completed completed = {};
  std::optional<Error> error = std::nullopt;
  std::optional<sys::MountTable> mounts = std::nullopt; ///< the table from then on
  std::map<std::string, std::string> files = {};        ///< written under the root by the call
  int times = 0, used = 0;
};

/// The JSON is one object (// comments allowed, unknown keys are errors); all keys may be left out:
///   {"identity": {...}, "now": "2026-01-01T00:00:00Z", "mountinfo": "text", "users": [{...}],
///    "run": [{"argv": [...], "exit_code": 0, "out": "", "err": "", "error": {code,message}|null, "times": 1,
///             "mountinfo": "table from then on", "files": {"/path/under/the/root": "content written by the call"},
///             "isolated": true}], (what it prints in namespaces of its own; not known there without)
///    "exec": as "run", "mount": [{"source":.., "target":.., "fs_type":.., "options":.., "error":..}],
///    "unmount": [{"target":.., "force":.., "lazy":.., "error":..}], (both with "times", "mountinfo", "files")
///    "nfs": {"HOST": NfsProbe},
///    "entries": {"PATH": {"kind": "directory", ...the fields of sys::Entry}, "PATH": {"hung": true}}}
/// A call gets the first answer that fits. A mount or unmount that is answered without an error and without a table of
/// its own changes the table as the kernel would.
struct Machine {
  sys::Identity identity;
  std::chrono::system_clock::time_point now;
  sys::MountTable mounts; ///< at first one local disk at /
  std::vector<sys::User> users;
  std::vector<Answer> run, exec, mount, unmount;
  std::map<std::string, sys::NfsProbe> nfs; ///< by host
  /// By path; others are files under the root. One that hangs does so with everything below it.
  std::map<std::string, sys::Entry> entries;

  // For what is easier said in C++: on_run is asked what `run` does not know, the others instead of the answers.
  std::function<Result<sys::Completed>(const sys::Command&)> on_run;
  std::function<void(const Argv&, const std::vector<std::string>& environment)> on_exec;
  std::function<Result<void>(const sys::MountCall&)> on_mount;
  std::function<Result<void>(const sys::UnmountCall&)> on_unmount;
  std::function<sys::NfsProbe(const sys::NfsProbeRequest&)> on_probe_nfs;
  /// nullopt: as without it.
  std::function<std::optional<sys::Entry>(const sys::EntryQuery&, const std::optional<sys::User>& as)> on_entry;

  Machine();
  /// `config` with the reason for text that describes no machine.
  static Result<Machine> from_json(const std::string& text);

  void add_mount(const std::string& source, const std::string& target, const std::string& fs_type,
                 const std::string& options = {});
  void remove_mount(const std::string& target); ///< the topmost one there
};

/// An NFS server of versions 3 and 4 that lets this host mount `directory`, which it exports to `clients`.
sys::NfsProbe nfs_server(const std::string& host, const std::string& directory, std::vector<std::string> clients);
/// One that does not answer.
sys::NfsProbe dead_nfs_server(const std::string& host);

} // namespace sharefs::test
