#pragma once
// Private to plan: the files of the journal, by name and by line.
//   STATE/journal/ID/plan.json    written once, before the first step
//   STATE/journal/ID/steps.jsonl  one line appended and fsynced per event
// Directories are 0700 and files 0600: pre-images may hold what only their owner may read. Names that begin with a dot
// are entries that are being made or deleted.
#include "base/result.hpp"
#include "plan/json_values.hpp"
#include "sys/fs/files.hpp"
#include "sys/fs/root_directory.hpp"

#include <string>

namespace sharefs::plan {

inline constexpr const char* k_plan_file = "plan.json";
inline constexpr const char* k_steps_file = "steps.jsonl";

// Events of steps.jsonl: {"event": "begin", "step": 0, "action": {...}} and so on.
inline constexpr const char* k_begin_event = "begin";   ///< a step's intent
inline constexpr const char* k_end_event = "end";       ///< a step's outcome
inline constexpr const char* k_finish_event = "finish"; ///< the plan ended by itself
inline constexpr const char* k_undone_event = "undone"; ///< with "by"
inline constexpr const char* k_redone_event = "redone"; ///< the undo was undone

std::string journal_directory(const std::string& state_directory);
std::string entry_directory(const std::string& state_directory, const std::string& id);

/// Makes `directory` (0700, with its parents) if it is missing, and checks that nobody else can write there:
/// `permission` for a link, another owner, or a directory that group or others may write. For the state directory and
/// below.
Result<void> make_private_directory(const sys::Files& files, const std::string& directory);
/// A new file 0600 with this content, fsynced.
Result<void> create_file(const sys::Files& files, const std::string& path, const std::string& content);
/// One line more (or several, with newlines between them), fsynced. A line that a killed process left incomplete is
/// closed first.
Result<void> append_line(const sys::Files& files, const std::string& path, const std::string& line);
/// Remove a directory of the journal with its files.
Result<void> remove_entry(const sys::Files& files, const std::string& directory);
Result<void> rename_entry(const sys::Files& files, const std::string& from, const std::string& to);

/// When a process was started, in clock ticks since boot (proc(5), field 22 of stat); 0 if there is no such process.
/// Together with the boot's id it tells a process from a later one with the same number.
std::uint64_t start_time_of(int pid);
std::string current_boot_id();

} // namespace sharefs::plan
