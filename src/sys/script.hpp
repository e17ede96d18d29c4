#pragma once
// What ScriptedSystem plays: the document, read and checked.
#include "sys/scripted_system.hpp"

#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

namespace sharefs::sys {

/// A call that the script answers, `times` times; 0: as often as it is asked.
struct ScriptedAnswer {
  nlohmann::json question; ///< the keys that have to be equal: argv, or source and target
  Completed completed;
  std::optional<Error> error;
  std::optional<std::string> mountinfo;     ///< the table from then on
  std::map<std::string, std::string> files; ///< written under the root
  int times = 0, used = 0;
};

/// What `inspect` knows about a path, or the error of the whole call.
struct ScriptedFact {
  PathFact fact;
  std::optional<Error> error;
};

struct ScriptedSystem::Script {
  Identity identity;
  std::chrono::system_clock::time_point now;
  std::string mountinfo;
  std::vector<User> users;
  std::vector<ScriptedAnswer> runs, execs, mounts, unmounts;
  std::map<std::string, NfsProbe> nfs;
  std::map<std::string, PathProbe> probes;
  std::map<std::string, ScriptedFact> facts;
  std::mutex mutex; ///< groups of a plan are applied in parallel
  std::vector<std::string> calls;

  /// Throws std::exception for a document that is not one, keys that nobody knows among that.
  explicit Script(const nlohmann::json& document);
  /// Notes the call `what`, and plays the first entry whose keys all have the values of `call`.
  Result<Completed> answer(const Files& files, std::vector<ScriptedAnswer>& answers, const nlohmann::json& call,
                           const std::string& what);
  /// From the script; else, under a root of its own, from the real files there.
  [[nodiscard]] Result<PathFact> look_at(const Files& files, const PathQuery& query) const;
};

/// `unsupported`: a test never falls through to the machine.
Error not_in_script(const std::string& call);

} // namespace sharefs::sys
