// The reading half of the journal. Whatever a killed process or a full disk left behind is read as far as it goes.
#include "base/path.hpp"
#include "base/text.hpp"
#include "plan/journal.hpp"
#include "plan/journal_files.hpp"

#include <algorithm>
#include <array>

namespace sharefs::plan {

namespace {

constexpr std::size_t k_entry_limit = 256U << 20U;
constexpr std::array<const char*, 5> k_states{"running", "complete", "failed", "unfinished", "undone"};

std::string text_in(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found == json.end() ? std::string() : bytes_from_json(*found).value_or("");
}

template <class T> T number_in(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number_integer() ? found->get<T>() : T{};
}

/// One entry while its lines are read.
class Reading {
 public:
  explicit Reading(const std::string& id) { m_entry.id = id; }

  void head(const std::string& text) {
    const auto json = parse_json(text);
    if (!json || !json->is_object())
      return;
    m_entry.command = text_in(*json, "command");
    m_entry.user = text_in(*json, "user");
    m_entry.started = text_in(*json, "started");
    m_is_alive = is_alive(*json);
    if (auto plan = json->contains("plan") ? plan_from_json((*json)["plan"]) : Result<Plan>()) {
      m_entry.plan = std::move(*plan);
      m_entry.steps.resize(m_entry.plan.steps.size());
      for (std::size_t i = 0; i < m_entry.steps.size(); ++i)
        m_entry.steps[i].step = i;
    }
  }

  void line(const std::string& text) {
    const auto json = parse_json(text);
    if (!json || !json->is_object())
      return;
    const auto name = text_in(*json, "event");
    if (name == k_begin_event)
      begin(*json);
    else if (name == k_end_event)
      end(*json);
    else if (name == k_finish_event)
      finish(*json);
    else if (name == k_undone_event || name == k_redone_event)
      m_entry.undone_by = (m_is_undone = name == k_undone_event) ? text_in(*json, "by") : "";
  }

  JournalEntry entry() && {
    const bool all_well = std::ranges::all_of(m_entry.steps, [](const JournalStep& step) {
      return step.outcome == Outcome::done || step.outcome == Outcome::unchanged;
    });
    m_entry.state = m_is_undone                 ? JournalState::undone
                    : m_is_finished && all_well ? JournalState::complete
                    : m_is_finished             ? JournalState::failed
                    : m_is_alive                ? JournalState::running
                                                : JournalState::unfinished;
    return std::move(m_entry);
  }

 private:
  static bool is_alive(const Json& json) {
    const auto start = number_in<std::uint64_t>(json, "start_time");
    return start != 0 && text_in(json, "boot_id") == current_boot_id() &&
           start_time_of(number_in<int>(json, "pid")) == start;
  }
  JournalStep* step_of(const Json& json) {
    const auto found = json.find("step");
    if (found == json.end() || !found->is_number_unsigned() || found->get<std::size_t>() >= m_entry.steps.size())
      return nullptr;
    return &m_entry.steps[found->get<std::size_t>()];
  }
  void begin(const Json& json) {
    auto* step = step_of(json);
    if (step == nullptr)
      return;
    step->begun = true;
    if (auto intent = json.contains("action") ? action_from_json(json["action"]) : fail(ErrorCode::failed, ""))
      m_entry.plan.steps[step->step].action = std::move(*intent);
  }
  void end(const Json& json) {
    auto* step = step_of(json);
    if (step == nullptr)
      return;
    step->ended = true;
    step->outcome = outcome_from(text_in(json, "outcome")).value_or(Outcome::failed);
    if (const auto error = json.find("error"); error != json.end() && error->is_object())
      step->error = error_code_from(text_in(*error, "code"));
  }
  /// Steps that found nothing to do have no line of their own.
  void finish(const Json& json) {
    m_is_finished = true;
    const auto outcomes = json.find("outcomes");
    if (outcomes == json.end() || !outcomes->is_array())
      return;
    for (std::size_t i = 0; i < std::min(outcomes->size(), m_entry.steps.size()); ++i)
      if (auto& step = m_entry.steps[i]; !step.begun) {
        step.outcome = outcome_from(bytes_from_json((*outcomes)[i]).value_or("")).value_or(Outcome::skipped);
        step.ended = step.outcome != Outcome::skipped;
      }
  }

  JournalEntry m_entry;
  bool m_is_alive = false, m_is_finished = false, m_is_undone = false;
};

/// Runs of digits compare as numbers: the process id in an id has no fixed width.
bool naturally_before(std::string_view a, std::string_view b) {
  const auto number = [](std::string_view text) {
    return text.substr(0, std::min(text.find_first_not_of("0123456789"), text.size()));
  };
  while (!a.empty() && !b.empty()) {
    const auto first = number(a);
    const auto second = number(b);
    if (!first.empty() && !second.empty()) {
      if (first != second)
        return first.size() != second.size() ? first.size() < second.size() : first < second;
      a.remove_prefix(first.size());
      b.remove_prefix(second.size());
    } else {
      if (a.front() != b.front())
        return a.front() < b.front();
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.size() < b.size();
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

Journal::Journal(const sys::Files& files, std::string state_directory)
    : m_files(files), m_state_directory(std::move(state_directory)) {}

Result<std::vector<JournalEntry>> Journal::list() const {
  auto names = m_files.list(journal_directory(m_state_directory));
  if (!names && names.error().code == ErrorCode::not_found)
    return std::vector<JournalEntry>{};
  if (!names)
    return fail(names.error());
  std::erase_if(*names, [](const std::string& name) { return name.starts_with('.'); });
  std::ranges::sort(*names, [](const std::string& a, const std::string& b) { return naturally_before(b, a); });
  std::vector<JournalEntry> entries;
  for (const auto& name : *names)
    if (auto entry = load(name))
      entries.push_back(std::move(*entry));
  return entries;
}

std::string Journal::newest_id() const {
  const auto names = m_files.list(journal_directory(m_state_directory));
  std::string newest;
  for (const auto& name : names.value_or(std::vector<std::string>{}))
    if (!name.starts_with('.') && naturally_before(newest, name))
      newest = name;
  return newest;
}

Result<JournalEntry> Journal::load(const std::string& id) const {
  const auto directory = entry_directory(m_state_directory, id);
  const bool is_name = !id.empty() && !id.starts_with('.') && id.find('/') == std::string::npos;
  const auto info = is_name ? m_files.info(directory) : Result<std::optional<sys::FileInfo>>(std::nullopt);
  if (!info)
    return fail(info.error());
  if (!*info) {
    const auto names = m_files.list(journal_directory(m_state_directory));
    const auto guess = did_you_mean_hint(id, names.value_or(std::vector<std::string>{}));
    return fail(ErrorCode::not_found, "the journal has no entry `" + to_utf8(id) + "`",
                guess.empty() ? "`sharefs undo --list` shows all" : guess);
  }
  Reading reading(id);
  if (const auto text = m_files.read(join_path(directory, k_plan_file), k_entry_limit))
    reading.head(*text);
  if (const auto text = m_files.read(join_path(directory, k_steps_file), k_entry_limit))
    for (const auto& line : split_lines(*text))
      reading.line(line);
  return std::move(reading).entry();
}

Result<std::optional<JournalEntry>> Journal::latest() const {
  auto entries = list();
  if (!entries)
    return fail(entries.error());
  for (auto& entry : *entries)
    if (!entry.is_undo() && entry.state != JournalState::undone &&
        std::ranges::any_of(entry.steps, &JournalStep::took_effect))
      return std::move(entry);
  return std::nullopt;
}

} // namespace sharefs::plan
