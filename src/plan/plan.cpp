#include "plan/plan.hpp"

#include "base/path.hpp"
#include "base/try.hpp"
#include "plan/json_values.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>

namespace sharefs::plan {

namespace {

constexpr std::array<const char*, 4> k_outcomes{"done", "unchanged", "failed", "skipped"};

bool has_undo(const Step& step) {
  return !step.stays && invert(step.action).has_value();
}

} // namespace

const char* to_string(Outcome outcome) {
  return k_outcomes[static_cast<std::size_t>(outcome)];
}

std::optional<Outcome> outcome_from(std::string_view name) {
  const auto found = std::ranges::find(k_outcomes, name);
  if (found == k_outcomes.end())
    return std::nullopt;
  return static_cast<Outcome>(found - k_outcomes.begin());
}

std::size_t Report::count_good() const {
  return static_cast<std::size_t>(std::ranges::count_if(results, is_good, &StepResult::outcome));
}

std::size_t Report::count(Outcome outcome) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(results, [outcome](const StepResult& result) { return result.outcome == outcome; }));
}

bool can_be_undone(const Plan& plan, const Report& report) {
  bool any = false;
  for (const auto& [step, outcome, error, took] : report.results) {
    if (step >= plan.steps.size() || (outcome != Outcome::done && outcome != Outcome::failed))
      continue;
    if (deletes(plan.steps[step].action))
      return false;
    any = any || (outcome == Outcome::done && has_undo(plan.steps[step]));
  }
  return any && !report.journal_id.empty() && plan.undoes.empty();
}

Plan merge_nested_groups(Plan plan) {
  // The unnamed group has ended before any other begins, so it need not be merged with another one.
  std::map<std::string, std::size_t> first_step;
  std::map<std::string, std::set<std::size_t>> groups_at; // the groups that touch exactly this path
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const auto& step = plan.steps[i];
    if (step.group.empty())
      continue;
    const auto group = first_step.emplace(step.group, i).first->second;
    for (const auto& path : touched_paths(step.action))
      groups_at[normalize_path(path)].insert(group);
  }
  // Sets of groups that belong together (union-find). A group is the index of its first step, and the smallest index of
  // a set stands for the set.
  std::vector<std::size_t> joined_to(plan.steps.size());
  std::iota(joined_to.begin(), joined_to.end(), 0U);
  const auto first_of = [&](std::size_t group) {
    while (joined_to[group] != group)
      group = joined_to[group];
    return group;
  };
  const auto join = [&](std::size_t a, std::size_t b) {
    const std::size_t one = first_of(a), other = first_of(b);
    joined_to[std::max(one, other)] = std::min(one, other);
  };
  for (const auto& [path, groups] : groups_at) {
    for (const auto group : groups)
      join(*groups.begin(), group);
    for (auto above = path; above != "/";) {
      above = parent_path(above);
      if (const auto found = groups_at.find(above); found != groups_at.end())
        join(*groups.begin(), *found->second.begin());
    }
  }
  for (auto& step : plan.steps)
    if (!step.group.empty()) // the first step of a set keeps the name of its group
      step.group = plan.steps[first_of(first_step[step.group])].group;
  return plan;
}

Json to_json(const Plan& plan) {
  auto steps = Json::array();
  for (const auto& step : plan.steps) {
    steps.push_back({{"group", bytes_to_json(step.group)},
                     {"why", bytes_to_json(step.why)},
                     {"description", describe(step.action)},
                     {"undoable", !step.stays_deleted && has_undo(step)},
                     {"action", to_json(step.action)}});
    if (step.stays_deleted)
      steps.back()["stays_deleted"] = true;
    if (step.stays)
      steps.back()["stays"] = true;
    if (step.bookkeeping)
      steps.back()["bookkeeping"] = true;
  }
  auto notes = Json::array();
  for (const auto& note : plan.notes)
    notes.push_back(bytes_to_json(note));
  Json json{{"steps", std::move(steps)}, {"notes", std::move(notes)}};
  if (!plan.undoes.empty())
    json["undoes"] = plan.undoes;
  if (plan.unnamed_last)
    json["unnamed_last"] = true;
  return json;
}

Result<Plan> plan_from_json(const Json& json) {
  const auto malformed = [] { return fail(ErrorCode::failed, "malformed plan"); };
  if (!member(json, "steps").is_array())
    return malformed();
  Plan plan;
  for (const auto& entry : member(json, "steps")) {
    const auto group = bytes_from_json(member(entry, "group"));
    const auto why = bytes_from_json(member(entry, "why"));
    if (!group || !why)
      return malformed();
    TRY_ASSIGN(auto action, action_from_json(member(entry, "action")));
    plan.steps.push_back({*group, *why, std::move(action), member(entry, "stays") == true,
                          member(entry, "bookkeeping") == true, member(entry, "stays_deleted") == true});
  }
  for (const auto& note : member(json, "notes"))
    plan.notes.push_back(bytes_from_json(note).value_or(""));
  plan.undoes = text_in(json, "undoes");
  plan.unnamed_last = member(json, "unnamed_last") == true;
  return plan;
}

} // namespace sharefs::plan
