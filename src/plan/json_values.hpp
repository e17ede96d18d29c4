#pragma once
// Private to plan: writing and reading JSON. Only the journal reads plans from JSON.
#include "base/json.hpp"
#include "base/json_fields.hpp"
#include "plan/plan.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace sharefs::plan {

using Json = nlohmann::ordered_json;

/// Returns the JSON as one line of text; never throws.
std::string dump_line(const Json& json);
/// Reads one JSON document; nullopt if the text is something else.
std::optional<Json> parse_json(const std::string& text);

/// Reads what to_json(const Plan&) has written.
Result<Plan> plan_from_json(const Json& json);
std::optional<Outcome> outcome_from(std::string_view name);

// ---- the names in the journal's files, for its reader and its writer ----

/// The version of the format of plan.json.
inline constexpr int k_journal_version = 2;

/// The fields of plan.json beside the plan itself.
struct JournalHead {
  int version = 0;
  std::string command, user, started;
  int pid = 0;
  std::string boot_id;
  std::uint64_t start_time = 0; ///< start time of the process (sys::process_start()); 0: not known
};
template <FieldsOf<JournalHead> H> auto fields(H& h) {
  return named("version", h.version, "command", h.command, "user", h.user, "started", h.started, "pid", h.pid,
               "boot_id", h.boot_id, "start_time", h.start_time);
}

inline constexpr const char* k_plan_file = "plan.json";
inline constexpr const char* k_steps_file = "steps.jsonl";

// Events of steps.jsonl: {"event": "begin", "step": 0, "action": {...}} and so on.
inline constexpr const char* k_begin_event = "begin";   ///< a step's intent
inline constexpr const char* k_end_event = "end";       ///< a step's outcome
inline constexpr const char* k_finish_event = "finish"; ///< the plan ended by itself
inline constexpr const char* k_undone_event = "undone"; ///< the entry was undone, by the entry in "by"
inline constexpr const char* k_redone_event = "redone"; ///< the undo of the entry was undone

/// Returns the number of an entry; 0 if the name is not that of an entry.
std::uint64_t entry_number(const std::string& id);
/// Returns those names that are ids of entries, oldest first.
std::vector<std::string> sorted_ids(std::vector<std::string> names);

} // namespace sharefs::plan
