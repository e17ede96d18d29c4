#include "fleet/outcome.hpp"

#include "base/json.hpp"
#include "base/number.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <unordered_map>

namespace sharefs::fleet {

extern const char k_ssh_messages[]; // ssh_messages.txt

namespace {

constexpr int k_killed = 128 + 9, k_not_found = 127, k_ssh_failed = 255, k_pending = 3, k_usage = 2,
              k_interrupted = 128 + 2;

constexpr const char* k_verbose = "`ssh -v NODE true` shows more";
constexpr const char* k_login = "`ssh NODE true` shows what logging in prints there";

/// Reads the state, the reason and the hint from ssh_messages.txt; false if no message in it occurs in `errors`.
bool read_known_message(Outcome& outcome, std::string_view errors) {
  static const auto k_rows = split_lines(k_ssh_messages);
  const auto is_meaning = [](const std::string& row) { return row.starts_with("  "); };
  const auto found = std::ranges::find_if(k_rows, [&](const std::string& row) {
    const auto colon = row.find(": ");
    return !is_meaning(row) && !row.starts_with('#') && colon != std::string::npos &&
           errors.find(std::string_view(row).substr(colon + 2)) != std::string_view::npos;
  });
  if (found == k_rows.end())
    return false;
  const auto state = found->substr(0, found->find(": "));
  const auto meaning = std::find_if(found, k_rows.end(), is_meaning);
  outcome.state = state == "other host key" ? State::other_host_key : state_from(state);
  outcome.why = trim(meaning[0]);
  outcome.hint = trim(meaning[1]);
  return true;
}

/// Returns the last line that is neither empty nor a progress report.
std::string last_message(std::string_view errors) {
  const auto lines = split_lines(errors);
  const auto line = std::find_if(lines.rbegin(), lines.rend(), [](const auto& one) {
    return !trim(one).empty() && !one.starts_with("{\"progress\"");
  });
  constexpr std::size_t k_most = 300;
  return line == lines.rend() ? "" : to_utf8(std::string(trim(*line)).substr(0, k_most));
}

/// Steps of bookkeeping count only where there are no others, as a plan is shown.
std::size_t count_results(const nlohmann::ordered_json& document, std::string_view outcome) {
  const auto& steps = member(member(document, "plan"), "steps");
  std::size_t count = 0, bookkeeping = 0;
  for (const auto& result : member(document, "results")) {
    if (text_in(result, "outcome") != outcome)
      continue;
    const auto& step = member(result, "step");
    const bool is_known = steps.is_array() && step.is_number_unsigned() && step.get<std::size_t>() < steps.size();
    ++(is_known && member(steps[step.get<std::size_t>()], "bookkeeping") == true ? bookkeeping : count);
  }
  return count > 0 ? count : bookkeeping;
}

std::size_t count_steps(const nlohmann::ordered_json& document) {
  return static_cast<std::size_t>(
      std::ranges::count_if(member(member(document, "plan"), "steps"),
                            [](const auto& step) { return step.is_object() && member(step, "bookkeeping") != true; }));
}

/// Returns the message of the first finding of this severity.
std::string find_diagnosis(const nlohmann::ordered_json& document, std::string_view severity, std::string& hint) {
  for (const auto& one : member(document, "diagnoses"))
    if (text_in(one, "severity") == severity) {
      const auto subject = text_in(one, "subject");
      hint = text_in(one, "hint");
      return (subject.empty() ? "" : subject + ": ") + text_in(one, "message");
    }
  return "";
}

void read_document(Outcome& outcome, int exit_code) {
  const auto& document = outcome.document;
  // A command that runs on this machine for a node reports itself if it did not reach the node.
  if (const auto& reached = member(document, "reached"); reached.is_object()) {
    outcome.state = state_from(text_in(reached, "state"));
    outcome.why = text_in(reached, "why");
    outcome.hint = text_in(reached, "hint");
    return;
  }
  const auto done = count_results(document, "done");
  const auto failed = count_results(document, "failed");
  if (exit_code == 0) {
    outcome.state = done > 0 ? State::changed : State::ok;
    outcome.why = done > 0 ? count_of(done, "step") + " done" : "";
    return;
  }
  if (exit_code == k_pending) {
    outcome.state = State::pending;
    outcome.why = count_of(count_steps(document), "step") + " to do";
    return;
  }
  outcome.state = State::failed;
  if (const auto& error = member(document, "error"); error.is_object()) {
    outcome.why = text_in(error, "message");
    outcome.hint = text_in(error, "hint");
  } else if (failed > 0) {
    outcome.why = fmt::format("{} failed, {} done", count_of(failed, "step"), done);
    for (const auto& result : member(document, "results"))
      if (const auto& its = member(result, "error"); its.is_object()) {
        outcome.why = text_in(its, "message");
        outcome.hint = text_in(its, "hint");
        break;
      }
  } else {
    outcome.why = find_diagnosis(document, "error", outcome.hint);
    if (outcome.why.empty())
      outcome.why = find_diagnosis(document, "warning", outcome.hint);
    if (outcome.why.empty())
      outcome.why = fmt::format("exit code {}", exit_code);
  }
}

/// Explains a node without an answer by the error messages of ssh, sudo or the node's shell.
void read_errors(Outcome& outcome, int exit_code, const std::string& errors) {
  const bool by_others = exit_code == k_ssh_failed || errors.find("sudo") != std::string::npos;
  if (by_others && read_known_message(outcome, errors))
    return;
  outcome.state = exit_code == k_ssh_failed ? State::unreachable : State::failed;
  outcome.why = last_message(errors);
  outcome.hint = exit_code == k_ssh_failed ? k_verbose : outcome.why.empty() ? k_login : "";
  if (outcome.why.empty())
    outcome.why = fmt::format("it ended with exit code {} and sent no answer", exit_code);
}

} // namespace

const char* to_string(State state) {
  constexpr std::array k_names{"ok",          "changed",         "pending",  "failed",   "timed out",
                               "unreachable", "refused",         "host key", "host key", "denied",
                               "no sharefs",  "version differs", "not tried"};
  return name_in(k_names, state);
}

Outcome other_host_key(const Node& node) {
  return outcome_of(node, {}, {.exit_code = k_ssh_failed, .errors = "REMOTE HOST IDENTIFICATION HAS CHANGED"});
}

State state_from(std::string_view text) {
  for (int i = 0; i <= static_cast<int>(State::not_tried); ++i)
    if (to_string(static_cast<State>(i)) == text)
      return static_cast<State>(i);
  return State::failed;
}

bool is_good(State state) {
  return state == State::ok || state == State::changed || state == State::pending;
}

std::string Outcome::journal_ids() const {
  constexpr std::size_t k_most_ids = 1000;
  std::vector<std::string> ids;
  for (const auto& earlier : member(document, "earlier_journal_ids"))
    if (earlier.is_string() && ids.size() < k_most_ids)
      ids.push_back(earlier.get<std::string>());
  ids.push_back(text_in(document, "journal_id"));
  std::ranges::reverse(ids);
  // undo puts them into a command line for the node's shell
  std::erase_if(ids, [](const std::string& id) { return !parse_number<std::uint64_t>(id); });
  return join(ids, " ");
}

bool Outcome::can_be_undone() const {
  return !journal_ids().empty() && member(document, "can_be_undone") == true;
}

Outcome outcome_of(const Node& node, Answer answer, const Ended& ended) {
  Outcome outcome{.node = node.name, .at_ms = ended.at_ms};
  const bool was_ended = answer.exit_code == k_interrupted && ended.exit_code == k_timed_out;
  if (answer.exit_code && answer.protocol == k_protocol && !was_ended) {
    outcome.document = std::move(answer.document);
    read_document(outcome, *answer.exit_code);
    constexpr std::size_t k_most_text = 4096;
    for (auto* text : {&outcome.why, &outcome.hint})
      if (text->size() > k_most_text)
        *text = to_utf8(text->substr(0, k_most_text)) + "...";
    return outcome;
  }
  if (!answer.version.empty() && answer.protocol != k_protocol) {
    outcome.state = State::version_differs;
    outcome.why = fmt::format("sharefs {} there speaks protocol {}, not {}: nothing was run", answer.version,
                              answer.protocol, k_protocol);
    outcome.hint = "`sharefs nodes push NODE` brings this version there";
  } else if (!ended.exit_code) {
    const bool begun = ended.begun || !answer.version.empty();
    outcome.state = begun ? State::failed : State::not_tried;
    outcome.why = begun ? "it was started, and whether it has ended is not known" : "";
  } else if (*ended.exit_code == k_timed_out || *ended.exit_code == k_killed) {
    outcome.state = State::timed_out;
    outcome.why = answer.version.empty() ? "no answer in time" : "it began, and did not end in time";
    outcome.hint = "`ssh NODE sharefs doctor` shows what it waits for; --node-deadline gives more time";
  } else if (*ended.exit_code == k_not_found && ended.errors.find("sudo") == std::string::npos &&
             ended.errors.find("shared librar") == std::string::npos) { // ld.so(8) uses this code, too
    outcome.state = State::no_sharefs;
    outcome.why = "sharefs is not installed there";
    outcome.hint = "`sharefs nodes push NODE` installs it";
  } else if (*ended.exit_code == k_usage && ended.errors.find("`--frame`") != std::string::npos) {
    outcome.state = State::version_differs;
    outcome.why = "sharefs there is too old to be called from other machines: nothing was run";
    outcome.hint = "`sharefs nodes push NODE` brings this version there";
  } else if (ended.cut) {
    outcome.state = State::failed;
    outcome.why = "its output is larger than what is kept of one, and the answer is not in what was kept";
    outcome.hint = k_login;
  } else {
    read_errors(outcome, *ended.exit_code, ended.errors);
  }
  return outcome;
}

nlohmann::ordered_json to_json(const Outcome& outcome) {
  return {{"name", outcome.node},
          {"state", to_string(outcome.state)},
          {"why", to_utf8(outcome.why)},
          {"hint", to_utf8(outcome.hint)},
          {"document", outcome.document}};
}

void replace(std::vector<Outcome>& outcomes, std::vector<Outcome> newer) {
  std::unordered_map<std::string, Outcome*> by_name;
  for (auto& outcome : newer)
    by_name.emplace(outcome.node, &outcome);
  for (auto& outcome : outcomes)
    if (const auto found = by_name.find(outcome.node); found != by_name.end())
      outcome = std::move(*found->second);
}

int exit_code_of(const std::vector<Outcome>& outcomes) {
  const auto good = static_cast<std::size_t>(
      std::ranges::count_if(outcomes, [](const Outcome& outcome) { return is_good(outcome.state); }));
  if (good < outcomes.size())
    return good == 0 ? 1 : 4;
  const bool pending =
      std::ranges::any_of(outcomes, [](const Outcome& outcome) { return outcome.state == State::pending; });
  return pending ? k_pending : 0;
}

} // namespace sharefs::fleet
