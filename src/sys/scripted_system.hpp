#pragma once
// A System that answers from a script: for golden and unit tests, and to play back what `--record` wrote.
#include "sys/system.hpp"

#include <memory>
#include <nlohmann/json_fwd.hpp>

namespace sharefs::sys {

/// The script is one JSON document (// comments allowed, unknown keys are errors); all keys may be left out:
///   {"identity": {...}, "now": "2026-01-01T00:00:00Z", "mountinfo": "text", "users": [{...}],
///    "run": [{"argv": [...], "exit_code": 0, "out": "", "err": "", "error": {code,message}|null, "times": 1,
///             "mountinfo": "table from then on", "files": {"/path/under/the/root": "content written by the call"}}],
///    "exec": as "run" with "error", "mount": [{"source":.., "target":.., "fs_type":.., "options":.., "error":..}],
///    "unmount": [{"target":.., "force":.., "lazy":.., "error":..}], (both with "times", "mountinfo", "files")
///    "nfs": {"HOST": NfsProbe}, "probe_path": {"PATH": PathProbe}, "inspect": {"PATH": PathFact or {"error":..}}}
/// A call is answered by the first entry that fits: of the keys that say what is asked (argv; source, target, ...) only
/// those that stand in the entry are compared. An entry with "times" is used so often and no more.
/// A call that the script does not know fails with `unsupported` and says what it was: a test never falls through to
/// the machine. Only `inspect` of a path that the script does not know looks at the files under the root, unless that
/// is "/". `exec` is recorded in calls() and fails.
class ScriptedSystem final : public System {
 public:
  static Result<std::unique_ptr<ScriptedSystem>> from_json(const std::string& text, std::string root);
  ~ScriptedSystem() override;

  Result<Completed> run(const Command& command) override;
  Error exec(const Argv& argv, const std::vector<std::string>& environment) override;
  Result<MountTable> mounts() override;
  Result<void> mount(const MountCall& call) override;
  Result<void> unmount(const UnmountCall& call) override;
  NfsProbe probe_nfs(const NfsProbeRequest& request) override;
  std::vector<PathProbe> probe_paths(const std::vector<PathProbeRequest>& requests) override;
  Result<std::vector<PathFact>> inspect(const InspectRequest& request) override;
  Identity identity() override;
  Result<User> user(std::string_view name) override;
  std::chrono::system_clock::time_point now() override;

  /// Every run, mount, unmount and exec so far, one readable line each, in order.
  [[nodiscard]] const std::vector<std::string>& calls() const;

 private:
  struct Script;
  ScriptedSystem(std::string root, std::unique_ptr<Script> script);
  std::unique_ptr<Script> m_script;
};

} // namespace sharefs::sys
