#include "plan/apply.hpp"
#include "plan/perform.hpp"
#include "sys/fs/files.hpp"
#include "sys/process/call.hpp"

#include "base/try.hpp"

#include <type_traits>

namespace sharefs::plan {

namespace {

/// The deadline of one file action. On a healthy machine none takes longer, and a dead mount must not delay the rest.
constexpr std::chrono::seconds k_file_deadline{30};

template <class A>
concept ActsOnFiles = requires(const A& a, const sys::Files& files) { act(a, files, Phase::check); };
template <class A>
concept ActsInChild = requires(const A& a, const ActorRoot& base) { act(a, base, Phase::check); };

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

/// Writes what the check has found into the action of this process: the access for SetAccess, the mode of a file or
/// directory that is removed.
void fill_in(Action& action, const Access& found) {
  if (auto* access = std::get_if<SetAccess>(&action); access != nullptr && !access->before)
    access->before = found;
  else if (auto* directory = std::get_if<Directory>(&action); directory != nullptr && directory->before) {
    directory->before = found.mode & 07777U;
    if (!directory->actor)
      directory->access = found;
  } else if (auto* file = std::get_if<File>(&action); file != nullptr && !file->after)
    file->mode = found.mode & 07777U;
}

/// Acts on a file in the process of the actor. A link at the path is refused, because it may lead to another user's
/// file.
template <ActsOnFiles A>
Result<Acted> act(const A& action, const ActorRoot& base, const std::string& root, Phase phase) {
  TRY_ASSIGN(const auto found, base.find(action.path));
  if (found.is_link())
    return conflict(action.path, "a file", found.text());
  return act(action, sys::Files(root), phase);
}

/// Runs a phase of an action from this root on.
template <class A>
Result<Acted> act_below(const ActorRoot& base, const A& action, const std::string& root, Phase phase) {
  if constexpr (ActsOnFiles<A>)
    return act(action, base, root, phase);
  else
    return act(action, base, phase);
}

/// Runs a phase of an action in this process, as on a directory of this host's own disk that nobody else can change;
/// nullopt: it needs a child. A checked link does, because its target may lie anywhere.
template <class A> std::optional<Result<Acted>> act_here(const A& action, const sys::Files& files, Phase phase) {
  if (actor_of(action))
    return std::nullopt;
  if constexpr (std::is_same_v<A, Link>)
    if (action.checked)
      return std::nullopt;
  const auto base = ActorRoot::for_this_process(files);
  if (!base)
    return std::nullopt;
  auto answer = act_below(*base, action, files.root(), phase);
  return base->needs_child() ? std::nullopt : std::optional(std::move(answer));
}

/// Runs a phase of a file action, in a child if it may hang. The child returns only whether there was something to do
/// and what it found, never an action, because the process of a user must not decide what root does.
template <class A> Result<Acted> act_on_files(const A& action, const sys::Files& files, Phase phase) {
  const auto in_child = [&]() -> Result<Acted> {
    TRY_ASSIGN(const auto base, ActorRoot::enter(files.root(), actor_of(action)));
    return act_below(base, action, files.root(), phase);
  };
  const auto here = act_here(action, files, phase);
  auto answer = here ? *here : sys::call(std::nullopt, deadline_of(action), in_child);
  if (!answer && answer.error().code == ErrorCode::timeout)
    return fail(ErrorCode::timeout, touched_paths(action).front() + ": " + answer.error().message,
                "it may lie on a dead mount: run `sharefs status`");
  if (answer && !is_good(answer->outcome))
    return fail(ErrorCode::failed, "the child process gave no valid result");
  // A user's process must not choose what is printed. SetImmutable has no actor.
  if (!answer)
    return answer;
  if constexpr (std::is_same_v<A, Directory>)
    answer->reason = answer->reason.empty() ? "" : not_empty(action.path);
  else if constexpr (!std::is_same_v<A, SetImmutable>)
    answer->reason.clear();
  return answer;
}

template <class A> Result<Acted> act_anywhere(const A& action, sys::System& system, Phase phase, const Note& note) {
  if constexpr (ActsOnFiles<A>)
    return action.actor ? act_on_files(action, system.files(), phase) : act(action, system.files(), phase);
  else if constexpr (ActsInChild<A>)
    return act_on_files(action, system.files(), phase);
  else if constexpr (requires { act(action, system, phase, note); })
    return act(action, system, phase, note);
  else
    return act(action, system, phase);
}

/// True for an action on a whole directory: it must name the one that the plan saw, or it would accept any.
template <class A>
constexpr bool k_needs_inode = std::is_same_v<A, RemoveTree> || std::is_same_v<A, SetTreeAccess> ||
                               std::is_same_v<A, ChangeFiles> || std::is_same_v<A, ExchangeForLink>;

Result<CheckedAction> run_phase(const Action& action, sys::System& system, Phase phase, const Note& note = nullptr) {
  return std::visit(
      [&]<class A>(const A& alternative) -> Result<CheckedAction> {
        if constexpr (k_needs_inode<A>)
          if (alternative.inode == 0)
            return conflict(alternative.path, "what the plan was made for", "a plan for none");
        TRY_ASSIGN(const auto acted, act_anywhere(alternative, system, phase, note));
        CheckedAction result{acted.outcome == Outcome::unchanged, action};
        if (acted.found)
          fill_in(result.intent, *acted.found);
        if (note && !acted.reason.empty())
          note(acted.reason, true);
        return result;
      },
      action);
}

} // namespace

Result<Outcome> synced(const sys::Walked& found, const std::string& path) {
  TRY(sys::sync_directory(found.directory.get(), path));
  return Outcome::done;
}

Result<CheckedAction> check_action(const Action& action, sys::System& system) {
  return run_phase(action, system, Phase::check);
}

Result<Outcome> perform(const Action& action, sys::System& system, const Note& note) {
  TRY_ASSIGN(const auto done, run_phase(action, system, Phase::perform, note));
  return done.already ? Outcome::unchanged : Outcome::done;
}

Result<Outcome> apply_action(const Action& action, sys::System& system) {
  TRY_ASSIGN(const auto checked, check_action(action, system));
  return checked.already ? Outcome::unchanged : perform(action, system);
}

} // namespace sharefs::plan
