#include "plan/apply.hpp"
#include "plan/json_values.hpp"
#include "plan/perform.hpp"

namespace sharefs::plan {

namespace {

/// For one file action. None takes longer on a machine that is well; a dead mount shall not hold up the rest.
constexpr std::chrono::seconds k_file_deadline{30};

template <class A>
concept ActsOnFiles = requires(A& a, const sys::Files& files) { act(a, files, Phase::look); };
template <class A>
concept ActsInChild = requires(A& a, const Ground& ground) { act(a, ground, Phase::look); };

template <class A> std::optional<Actor> actor_of(const A& action) {
  if constexpr (requires { action.actor; })
    return action.actor;
  else
    return std::nullopt;
}

template <class A> std::chrono::milliseconds deadline_of(const A& action) {
  if constexpr (requires { action.deadline; })
    return action.deadline;
  else
    return k_file_deadline;
}

struct Acted {
  Outcome outcome;
  Action action;
};

/// The child hands back the outcome and, as JSON, the action with what it found.
template <class A> Result<Acted> act_in_child(const A& action, const sys::Files& files, Phase phase) {
  const auto answer = sys::in_child(std::nullopt, deadline_of(action), [&]() -> Result<std::string> {
    const auto ground = Ground::enter(files.root(), actor_of(action));
    if (!ground)
      return fail(ground.error());
    A copy = action;
    const auto outcome = act(copy, *ground, phase);
    if (!outcome)
      return fail(outcome.error());
    return (*outcome == Outcome::done ? "+" : "=") +
           (copy == action ? std::string() : dump_line(to_json(Action(copy))));
  });
  if (!answer && answer.error().code == ErrorCode::timeout)
    return fail(ErrorCode::timeout, touched_paths(action).front() + ": " + answer.error().message,
                "it may lie on a dead mount: run `sharefs status`");
  if (!answer)
    return fail(answer.error());
  Acted acted{answer->starts_with('+') ? Outcome::done : Outcome::unchanged, action};
  if (answer->size() > 1) {
    const auto json = parse_json(answer->substr(1));
    auto found = json ? action_from_json(*json) : fail(ErrorCode::failed, "the child process gave no valid result");
    if (!found)
      return fail(found.error());
    acted.action = std::move(*found);
  }
  return acted;
}

Result<Acted> run_phase(const Action& action, sys::System& system, Phase phase) {
  return std::visit(
      [&]<class A>(const A& alternative) -> Result<Acted> {
        if constexpr (ActsInChild<A>)
          return act_in_child(alternative, system.files(), phase);
        else {
          A copy = alternative;
          Result<Outcome> outcome = Outcome::unchanged;
          if constexpr (ActsOnFiles<A>)
            outcome = act(copy, system.files(), phase);
          else
            outcome = act(copy, system, phase);
          if (!outcome)
            return fail(outcome.error());
          return Acted{*outcome, Action(std::move(copy))};
        }
      },
      action);
}

} // namespace

Result<Looked> look_at(const Action& action, sys::System& system) {
  auto acted = run_phase(action, system, Phase::look);
  if (!acted)
    return fail(acted.error());
  return Looked{acted->outcome == Outcome::unchanged, std::move(acted->action)};
}

Result<Outcome> perform(const Action& action, sys::System& system) {
  const auto acted = run_phase(action, system, Phase::perform);
  if (!acted)
    return fail(acted.error());
  return acted->outcome;
}

Result<Outcome> apply_action(const Action& action, sys::System& system) {
  const auto looked = look_at(action, system);
  if (!looked)
    return fail(looked.error());
  return looked->already ? Outcome::unchanged : perform(action, system);
}

} // namespace sharefs::plan
