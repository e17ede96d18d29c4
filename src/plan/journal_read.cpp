// Reading the journal. An entry of a killed process is read as far as it was written. Anything that a killed
// process cannot have left is damage, and an entry with damage is never ignored silently.
#include "base/number.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "plan/journal.hpp"
#include "plan/json_values.hpp"
#include "sys/find_processes.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <set>

namespace sharefs::plan {

namespace {

constexpr std::array<const char*, 6> k_states{"running", "complete", "failed", "unfinished", "undone", "unreadable"};

bool is_alive(const JournalHead& head) {
  return head.start_time != 0 && head.boot_id == sys::own_boot_id() &&
         sys::process_start(sys::Files(), head.pid) == head.start_time;
}

/// Reads the files of one entry.
class EntryReader {
 public:
  explicit EntryReader(const std::string& id) { m_entry.id = id; }

  void read_head(const std::string& text) {
    const auto json = parse_json(text);
    if (!json || !json->is_object())
      return set_damage("its plan.json is cut off, or no JSON");
    JournalHead head;
    if (const char* wrong = read_fields(*json, head); wrong != nullptr)
      return set_damage("its plan.json: the field `" + std::string(wrong) + "` is malformed");
    m_is_alive = is_alive(head);
    if (head.version > k_journal_version)
      return set_damage("it was written by a later version of sharefs");
    auto plan = head.version == k_journal_version ? plan_from_json(member(*json, "plan"))
                                                  : fail(ErrorCode::failed, "another version");
    m_entry.command = std::move(head.command);
    m_entry.user = std::move(head.user);
    m_entry.started = std::move(head.started);
    m_entry.boot_id = std::move(head.boot_id);
    if (!plan)
      return set_damage("its plan.json: " + plan.error().message);
    m_entry.plan = std::move(*plan);
    m_entry.steps.resize(m_entry.plan.steps.size());
    for (std::size_t i = 0; i < m_entry.steps.size(); ++i)
      m_entry.steps[i].step = i;
  }

  void read_events(const std::string& text) {
    for (const auto& line : split_lines(text))
      if (const auto json = parse_json(line)) // an incomplete line was written when the process or the host died
        if (!read_event(*json))
          return set_damage("its steps.jsonl has a line that is not understood: " + line.substr(0, 60));
    const bool begun = std::ranges::any_of(m_entry.steps, &JournalStep::begun);
    if (!begun) // the file was made with the first intent in it
      set_damage("its steps.jsonl is cut off");
  }

  void set_damage(const std::string& how) {
    if (m_entry.damage.empty())
      m_entry.damage = to_utf8(how);
  }

  JournalEntry entry() && {
    const bool all_well =
        std::ranges::all_of(m_entry.steps, [](const JournalStep& step) { return is_good(step.outcome); });
    m_entry.state = !m_entry.damage.empty()     ? JournalState::unreadable
                    : m_is_undone               ? JournalState::undone
                    : m_is_finished && all_well ? JournalState::complete
                    : m_is_finished             ? JournalState::failed
                    : m_is_alive                ? JournalState::running
                                                : JournalState::unfinished;
    return std::move(m_entry);
  }

 private:
  /// Reads one event; false if it is not understood.
  bool read_event(const Json& json) {
    const auto name = text_in(json, "event");
    if (name == k_begin_event)
      return read_begin(json);
    if (name == k_end_event)
      return read_end(json);
    if (name == k_finish_event)
      return read_finish(json);
    if (name != k_undone_event && name != k_redone_event)
      return false;
    m_is_undone = name == k_undone_event;
    m_entry.undone_by = m_is_undone ? text_in(json, "by") : "";
    return true;
  }
  JournalStep* step_of(const Json& json) {
    const auto& step = member(json, "step");
    if (!step.is_number_unsigned() || step.get<std::size_t>() >= m_entry.steps.size())
      return nullptr;
    return &m_entry.steps[step.get<std::size_t>()];
  }
  bool read_begin(const Json& json) {
    auto* step = step_of(json);
    auto intent = action_from_json(member(json, "action"));
    if (step == nullptr || !intent)
      return false;
    step->begun = true;
    m_entry.plan.steps[step->step].action = std::move(*intent);
    return true;
  }
  bool read_end(const Json& json) {
    auto* step = step_of(json);
    const auto outcome = outcome_from(text_in(json, "outcome"));
    if (step == nullptr || !outcome || (*outcome == Outcome::done && !step->begun))
      return false;
    step->ended = true;
    step->outcome = *outcome;
    if (const auto& error = member(json, "error"); error.is_object())
      step->error = error_code_from(text_in(error, "code"));
    return true;
  }
  /// Reads the end of the run with the outcomes of all steps, because steps that found nothing to do may have no line
  /// of their own.
  bool read_finish(const Json& json) {
    m_is_finished = true;
    const auto& outcomes = member(json, "outcomes");
    if (!outcomes.is_array() || outcomes.size() != m_entry.steps.size())
      return false;
    for (auto& step : m_entry.steps)
      if (!step.begun) {
        step.outcome = outcome_from(bytes_from_json(outcomes[step.step]).value_or("")).value_or(Outcome::skipped);
        step.ended = step.outcome != Outcome::skipped;
      }
    return true;
  }

  JournalEntry m_entry;
  bool m_is_alive = false, m_is_finished = false, m_is_undone = false;
};

JournalEntry read_entry(const PrivateDirectory& journal, const std::string& id) {
  EntryReader reader(id);
  const auto directory = journal.open_below(id);
  for (const auto& [name, use] :
       {std::pair{k_plan_file, &EntryReader::read_head}, std::pair{k_steps_file, &EntryReader::read_events}}) {
    const auto text = directory && *directory ? (*directory)->read(name)
                      : directory             ? fail(ErrorCode::not_found, "it is gone")
                                              : fail(directory.error());
    if (text)
      (reader.*use)(*text);
    else
      reader.set_damage(text.error().message);
  }
  return std::move(reader).entry();
}

} // namespace

const char* to_string(JournalState state) {
  return k_states[static_cast<std::size_t>(state)];
}

bool JournalStep::took_effect() const {
  if (!begun)
    return false;
  if (!ended)
    return true;
  return outcome == Outcome::done || (outcome == Outcome::failed && error != ErrorCode::conflict);
}

bool JournalEntry::has_deleted() const {
  return std::ranges::any_of(
      steps, [this](const JournalStep& step) { return step.took_effect() && deletes(plan.steps[step.step].action); });
}

std::uint64_t entry_number(const std::string& id) {
  constexpr std::size_t k_most_digits = 15;
  return id.size() <= k_most_digits ? parse_number<std::uint64_t>(id).value_or(0) : 0;
}

std::vector<std::string> sorted_ids(std::vector<std::string> names) {
  std::erase_if(names, [](const std::string& name) { return entry_number(name) == 0; });
  std::ranges::sort(names, {}, entry_number);
  return names;
}

Journal::Journal(const sys::Files& files, std::string state_directory)
    : m_files(files), m_state_directory(std::move(state_directory)) {}

Result<std::optional<PrivateDirectory>> Journal::directory() const {
  auto state = PrivateDirectory::open(m_files, m_state_directory);
  if (!state || !*state)
    return state;
  return (*state)->open_below("journal");
}

Result<Journal::Contents> Journal::contents() const {
  TRY_ASSIGN(auto journal, directory());
  TRY_ASSIGN(auto names, journal ? journal->names() : Result<std::vector<std::string>>());
  return Contents{std::move(journal), std::move(names)};
}

std::vector<std::string> Journal::Contents::ids() const {
  return sorted_ids(names);
}

Result<void> Journal::for_each(const std::function<void(JournalEntry)>& see) const {
  TRY_ASSIGN(const auto contents, this->contents());
  const auto ids = contents.ids();
  for (auto id = ids.rbegin(); id != ids.rend(); ++id)
    see(read_entry(*contents.directory, *id));
  return {};
}

Result<std::vector<JournalEntry>> Journal::find_undos(const std::string& id) const {
  std::vector<JournalEntry> undos;
  std::map<std::string, std::set<std::string>> changed; // the paths of later runs; a run and its undo have one row
  TRY(for_each([&](JournalEntry entry) {
    const auto touched = [&entry](const JournalStep& step) {
      return touched_paths(entry.plan.steps[step.step].action);
    };
    if (entry.plan.undoes == id) {
      std::erase_if(entry.steps, [&](const JournalStep& step) {
        return std::ranges::any_of(touched(step), [&](const std::string& path) {
          return std::ranges::any_of(changed, [&](const auto& row) { return row.second.contains(path); });
        });
      });
      undos.push_back(std::move(entry));
    } else if (entry.state == JournalState::undone) {
      changed.erase(entry.id); // the run and its undo have changed nothing together
    } else if (entry.state != JournalState::unreadable) {
      for (const auto& step : entry.steps)
        if (step.took_effect())
          for (auto& path : touched(step))
            changed[entry.is_undo() ? entry.plan.undoes : entry.id].insert(std::move(path));
    }
  }));
  return undos;
}

Result<std::string> Journal::newest_id() const {
  return contents().map([](const Contents& contents) {
    const auto ids = contents.ids();
    return ids.empty() ? "" : ids.back();
  });
}

Result<JournalEntry> Journal::load(const std::string& id) const {
  TRY_ASSIGN(const auto journal, directory());
  const bool is_name = !id.empty() && !id.starts_with('.') && id.find('/') == std::string::npos;
  if (const auto found = journal && is_name ? journal->open_below(id) : std::nullopt; !found || *found)
    return read_entry(*journal, id);
  return fail(ErrorCode::not_found, "the journal has no entry `" + to_utf8(id) + "`",
              did_you_mean_hint(id, contents().value_or(Contents{}).ids()));
}

Result<std::optional<JournalEntry>> Journal::find_latest(std::vector<JournalEntry>* passed) const {
  TRY_ASSIGN(const auto contents, this->contents());
  const auto ids = contents.ids();
  for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
    auto entry = read_entry(*contents.directory, *id);
    if (entry.state == JournalState::unreadable)
      return entry;
    if (entry.is_undo() || entry.state == JournalState::undone ||
        std::ranges::none_of(entry.steps, &JournalStep::took_effect))
      continue;
    if (!entry.has_deleted())
      return entry;
    if (passed != nullptr)
      passed->push_back(std::move(entry));
  }
  return std::nullopt;
}

} // namespace sharefs::plan
