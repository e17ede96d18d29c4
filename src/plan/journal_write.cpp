// The writing half of the journal: used by apply(), under the host lock.
#include "base/path.hpp"
#include "base/text.hpp"
#include "plan/journal.hpp"
#include "plan/journal_files.hpp"

#include <ctime>
#include <fmt/format.h>

namespace sharefs::plan {

namespace {

constexpr int k_most_names = 1000; // plans of one process within one second

std::tm utc(std::chrono::system_clock::time_point time) {
  const auto seconds = std::chrono::system_clock::to_time_t(time);
  std::tm fields{};
  ::gmtime_r(&seconds, &fields);
  return fields;
}

std::string formatted(const std::tm& time, const char* format) {
  std::array<char, 64> text{};
  return {text.data(), std::strftime(text.data(), text.size(), format, &time)};
}

Error in_journal(Error error) {
  error.message = "the journal cannot be written, so nothing is changed: " + error.message;
  return error;
}

Json event(const char* name) {
  return Json{{"event", name}};
}

} // namespace

Result<std::string> Journal::begin(const Plan& plan, const std::string& command, const sys::Identity& identity,
                                   std::chrono::system_clock::time_point now) const {
  const auto journal = journal_directory(m_state_directory);
  for (const auto& directory : {m_state_directory, journal})
    if (auto made = make_private_directory(m_files, directory); !made)
      return fail(in_journal(made.error()));
  const auto time = utc(now);
  const auto stem = formatted(time, "%Y%m%d-%H%M%S-") + std::to_string(identity.pid);
  const bool is_this_process = identity.pid == ::getpid() && identity.boot_id == current_boot_id();
  for (int n = 1; n <= k_most_names; ++n) {
    const auto id = n == 1 ? stem : fmt::format("{}-{}", stem, n);
    const auto microseconds =
        std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count() % 1'000'000;
    const Json head{{"version", 1},
                    {"id", id},
                    {"command", bytes_to_json(command)},
                    {"user", bytes_to_json(identity.user)},
                    {"started", formatted(time, "%Y-%m-%dT%H:%M:%SZ")},
                    {"started_us", microseconds},
                    {"pid", identity.pid},
                    {"boot_id", identity.boot_id},
                    {"start_time", is_this_process ? start_time_of(identity.pid) : 0},
                    {"plan", to_json(plan)}};
    // Under its own name it is complete: a process that is killed here leaves only a name with a dot.
    const auto draft = join_path(journal, ".new-" + id);
    if (const auto left = m_files.info(draft); left && *left)
      if (auto removed = remove_entry(m_files, draft); !removed)
        return fail(in_journal(removed.error()));
    auto made = m_files.make_directories(draft, 0700);
    if (made)
      made = create_file(m_files, join_path(draft, k_plan_file),
                         head.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
    if (made)
      made = create_file(m_files, join_path(draft, k_steps_file), "");
    if (!made)
      return fail(in_journal(made.error()));
    auto renamed = rename_entry(m_files, draft, join_path(journal, id));
    if (renamed)
      return id;
    if (renamed.error().code != ErrorCode::conflict)
      return fail(in_journal(renamed.error()));
    if (auto removed = remove_entry(m_files, draft); !removed)
      return fail(in_journal(removed.error()));
  }
  return fail(ErrorCode::failed, journal + ": no free name for " + stem);
}

Result<void> Journal::step_begins(const std::string& id, std::size_t step, const Action& intent) const {
  auto line = event(k_begin_event);
  line["step"] = step;
  line["action"] = to_json(intent);
  auto appended =
      append_line(m_files, join_path(entry_directory(m_state_directory, id), k_steps_file), dump_line(line));
  if (!appended)
    return fail(in_journal(appended.error()));
  return {};
}

Result<void> Journal::step_ended(const std::string& id, const StepResult& result) const {
  return steps_ended(id, {result});
}

Result<void> Journal::steps_ended(const std::string& id, const std::vector<StepResult>& results) const {
  std::vector<std::string> lines;
  for (const auto& result : results) {
    auto line = event(k_end_event);
    line["step"] = result.step;
    line["outcome"] = to_string(result.outcome);
    if (result.error)
      line["error"] = to_json(*result.error);
    lines.push_back(dump_line(line));
  }
  if (lines.empty())
    return {};
  return append_line(m_files, join_path(entry_directory(m_state_directory, id), k_steps_file), join(lines, "\n"));
}

Result<void> Journal::end(const std::string& id, const Report& report) const {
  auto line = event(k_finish_event);
  line["interrupted"] = report.interrupted;
  auto outcomes = Json::array();
  for (const auto& result : report.results)
    outcomes.push_back(to_string(result.outcome));
  line["outcomes"] = std::move(outcomes);
  return append_line(m_files, join_path(entry_directory(m_state_directory, id), k_steps_file), dump_line(line));
}

Result<void> Journal::mark_undone(const std::string& id, const std::string& by) const {
  // An undo of an undo puts the first entry in force again, an undo of that one takes it back, and so on down the
  // chain.
  constexpr int k_longest_chain = 1000;
  std::string current = id;
  bool undone = true;
  for (int n = 0; n < k_longest_chain && !current.empty(); ++n, undone = !undone) {
    const auto entry = load(current);
    if (!entry)
      return n == 0 ? Result<void>(fail(entry.error())) : Result<void>{}; // older ones may have been pruned
    auto line = event(undone ? k_undone_event : k_redone_event);
    line["by"] = by;
    auto appended =
        append_line(m_files, join_path(entry_directory(m_state_directory, current), k_steps_file), dump_line(line));
    if (!appended)
      return appended;
    current = entry->plan.undoes;
  }
  return {};
}

Result<void> Journal::prune(std::size_t keep) const {
  const auto journal = journal_directory(m_state_directory);
  const auto names = m_files.list(journal);
  if (!names)
    return fail(names.error());
  std::vector<std::string> ids;
  for (const auto& name : *names) {
    if (!name.starts_with('.'))
      ids.push_back(name);
    else if (auto removed = remove_entry(m_files, join_path(journal, name)); !removed) // of a killed begin or prune
      return removed;
  }
  // Ids sort by time to the second, which is enough for the oldest of many.
  for (std::size_t i = 0; i + keep < ids.size(); ++i) {
    const auto entry = load(ids[i]);
    if (!entry || entry->state == JournalState::running || entry->state == JournalState::unfinished)
      continue;
    const auto doomed = join_path(journal, ".deleted-" + ids[i]);
    auto removed = rename_entry(m_files, join_path(journal, ids[i]), doomed);
    if (removed)
      removed = remove_entry(m_files, doomed);
    if (!removed)
      return removed;
  }
  return {};
}

} // namespace sharefs::plan
