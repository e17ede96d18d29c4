#include "plan/apply.hpp"
#include "plan/perform.hpp"
#include "sys/process/wire.hpp"

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

/// What an action finds, of all that it has: for SetAccess the access, for RemoveDirectory the mode.
std::optional<Access> found_by(const Action& action) {
  if (const auto* access = std::get_if<SetAccess>(&action))
    return access->before;
  if (const auto* directory = std::get_if<RemoveDirectory>(&action))
    return Access{0, 0, directory->mode, ""};
  return std::nullopt;
}

void fill_in(Action& action, const Access& found) {
  if (auto* access = std::get_if<SetAccess>(&action); access != nullptr && !access->before)
    access->before = found;
  else if (auto* directory = std::get_if<RemoveDirectory>(&action))
    directory->mode = found.mode & 07777U;
}

/// The child hands back whether there was something to do and what it found, never an action: it may be a user's
/// process, and what it says must not decide what root does.
template <class A> Result<Acted> act_in_child(const A& action, const sys::Files& files, Phase phase) {
  const auto answer = sys::in_child(std::nullopt, deadline_of(action), [&]() -> Result<std::string> {
    const auto ground = Ground::enter(files.root(), actor_of(action));
    if (!ground)
      return fail(ground.error());
    A copy = action;
    const auto outcome = act(copy, *ground, phase);
    if (!outcome)
      return fail(outcome.error());
    const auto found = found_by(copy).value_or(Access{});
    sys::WireWriter writer;
    writer.put(*outcome == Outcome::done).put(found_by(copy).has_value());
    writer.put(found.uid).put(found.gid).put(found.mode).put(found.default_acl);
    return writer.bytes();
  });
  if (!answer && answer.error().code == ErrorCode::timeout)
    return fail(ErrorCode::timeout, touched_paths(action).front() + ": " + answer.error().message,
                "it may lie on a dead mount: run `sharefs status`");
  if (!answer)
    return fail(answer.error());
  sys::WireReader reader(*answer);
  Acted acted{reader.get<bool>() ? Outcome::done : Outcome::unchanged, action};
  const bool has_found = reader.get<bool>();
  Access found{reader.get<std::uint32_t>(), reader.get<std::uint32_t>(), reader.get<std::uint32_t>(), ""};
  found.default_acl = reader.text();
  if (!reader.ok() || !reader.at_end())
    return fail(ErrorCode::failed, touched_paths(action).front() + ": the child process gave no valid answer");
  if (has_found)
    fill_in(acted.action, found);
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
