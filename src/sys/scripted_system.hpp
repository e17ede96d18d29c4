#pragma once
// A System that answers from a script: for golden and unit tests, and to play back what `--record` wrote.
#include "sys/system.hpp"

#include <memory>
#include <nlohmann/json_fwd.hpp>

namespace sharefs::sys {

/// The script is one JSON document:
///   {"identity": {...}, "now": "2026-01-01T00:00:00Z", "mountinfo": "text", "users": [{...}],
///    "run": [{"argv": [...], "exit_code": 0, "out": "", "err": "", "times": 1, "mountinfo": "text after"}],
///    "mount": [{"source":..,"target":..,"error": {code,message}|null, "mountinfo": "text after"}], "unmount": [...],
///    "nfs": {"HOST": NfsProbe}, "probe_path": {"PATH": PathProbe}, "inspect": {"PATH": PathFact}}
/// A call that the script does not know fails with `unsupported` and says what it was: a test never falls through to
/// the machine. `exec` is recorded and reported by exec_calls().
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
