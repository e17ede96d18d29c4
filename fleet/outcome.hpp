#pragma once
// What became of a command on one node: from its frames, from the end of the program that reached it, and from what
// that program said.
#include "base/result.hpp"
#include "fleet/frames.hpp"
#include "fleet/node.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::fleet {

enum class State {
  ok,
  changed,
  pending, ///< `--check`: there is something to do
  failed,
  timed_out,
  unreachable,
  refused,         ///< nothing listens for ssh there
  host_key,        ///< not known
  other_host_key,  ///< another one than before; to_string() has one word for both
  denied,          ///< ssh lets this user not in, or sudo does not let it be root
  no_sharefs,      ///< it is not installed there
  version_differs, ///< it speaks another protocol: nothing was run
  not_tried,
};
const char* to_string(State state);
/// What to_string() says; `failed` for anything else.
State state_from(std::string_view text);
/// Nothing is to be done again there.
bool is_good(State state);

/// How the program that was to reach the node ended.
struct Ended {
  std::optional<int> exit_code; ///< nullopt: not yet, or it was killed with us
  std::string errors;           ///< what it said: ssh's own words, or of the command
  std::int64_t at_ms = 0;       ///< since 1970, by this machine's clock; 0: not known
  bool begun = false;           ///< where it has not ended: it was started
  bool cut = false;             ///< it said more than is kept (k_most_said)
};

struct Outcome {
  std::string node;
  State state = State::not_tried;
  std::string why = {};                 ///< one phrase: "Connection refused", "2 steps done"
  std::string hint = {};                ///< the cure; `NODE` stands for its name
  nlohmann::ordered_json document = {}; ///< of the command; null: none came

  std::int64_t at_ms = 0; ///< when the answer was complete, by this machine's clock

  /// The id of what the command has changed there, by that node's journal; empty: nothing.
  [[nodiscard]] std::string journal_id() const;
};

/// {name, state, why, hint, document}
nlohmann::ordered_json to_json(const Outcome& outcome);

/// timeout(1)'s exit code after which nobody waited longer.
inline constexpr int k_timed_out = 124;

Outcome outcome_of(const Node& node, Answer answer, const Ended& ended);

/// Of a node that offers another key than the known one, as where ssh itself says so.
Outcome other_host_key(const Node& node);

/// Newer answers take the place of those of the same nodes.
void replace(std::vector<Outcome>& outcomes, std::vector<Outcome> newer);

/// 0; 3 where something is pending and nothing failed; 1 where all failed, 4 where some did.
int exit_code_of(const std::vector<Outcome>& outcomes);

} // namespace sharefs::fleet
