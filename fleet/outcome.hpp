#pragma once
// The outcome of a command on one node: it is decided from the frames, the exit code of the program that reached the
// node, and that program's error messages.
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
  pending, ///< for `--check`: there is something to do
  failed,
  timed_out,
  unreachable,
  refused,         ///< nothing on the node listens for ssh
  host_key,        ///< the host key is not known
  other_host_key,  ///< the host key differs from the known one; to_string() has one text for both
  denied,          ///< ssh does not let this user in, or sudo does not let the user become root
  no_sharefs,      ///< sharefs is not installed there
  version_differs, ///< sharefs there has another protocol version; nothing was run
  not_tried,
};
const char* to_string(State state);
/// Reads the text of to_string(); `failed` for anything else.
State state_from(std::string_view text);
/// True if nothing has to be done again on the node.
bool is_good(State state);

/// How the program that should reach the node ended.
struct Ended {
  std::optional<int> exit_code; ///< nullopt: it has not ended, or was killed with this process
  std::string errors;           ///< its standard error: messages of ssh or of the command
  std::int64_t at_ms = 0;       ///< since 1970, by this machine's clock; 0: not known
  bool begun = false;           ///< it was started, for one that has not ended
  bool cut = false;             ///< its output was longer than k_output_limit and was cut
};

struct Outcome {
  std::string node;
  State state = State::not_tried;
  std::string why = {};                 ///< one phrase: "Connection refused", "2 steps done"
  std::string hint = {};                ///< the cure; the text `NODE` is replaced by the node's name
  nlohmann::ordered_json document = {}; ///< output of the command; null: none arrived

  std::int64_t at_ms = 0; ///< when the answer was complete, by this machine's clock

  /// Returns the ids of the changes in the journal of that node, newest first, with spaces between; "" if nothing was
  /// changed.
  [[nodiscard]] std::string journal_ids() const;
  /// True if `undo` is to be offered for it, by plan::can_be_undone() on the node.
  [[nodiscard]] bool can_be_undone() const;
};

/// Returns {name, state, why, hint, document}.
nlohmann::ordered_json to_json(const Outcome& outcome);

/// The exit code of timeout(1) when the deadline has passed.
inline constexpr int k_timed_out = 124;

/// Decides the outcome of a node from its answer and from the end of the program that reached it.
Outcome outcome_of(const Node& node, Answer answer, const Ended& ended);

/// Returns the outcome for a node that offers another key than the known one; it equals the outcome where ssh reports
/// this.
Outcome other_host_key(const Node& node);

/// Replaces the outcomes of the nodes that `newer` names.
void replace(std::vector<Outcome>& outcomes, std::vector<Outcome> newer);

/// Returns 0 if all are good, 3 if also something is pending, 1 if all failed, 4 if some failed.
int exit_code_of(const std::vector<Outcome>& outcomes);

} // namespace sharefs::fleet
