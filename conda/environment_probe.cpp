#include "conda/environment_reader.hpp"

#include "base/path.hpp"
#include "base/try.hpp"
#include "conda/running.hpp"

#include <algorithm>
#include <cerrno>

namespace sharefs::conda {

namespace {

/// Finds out where the prefixes lead now. They may lie on a server that is gone, so they are read with a deadline.
void resolve_prefixes(const sys::Files& files, const std::string& path, std::vector<PrefixUse>& uses) {
  sys::EntryRequest request;
  request.queries.push_back({.path = path, .follow = true});
  for (const auto& use : uses) {
    request.queries.push_back({.path = use.prefix, .follow = true});
    request.queries.push_back({.path = join_path(use.prefix, "conda-meta"), .follow = true});
  }
  const auto entries = sys::read_entries(files, sys::MountTable(), request);
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const auto& directory = entries[1 + 2 * i];
    const auto& meta = entries[2 + 2 * i];
    const bool same = directory.exists() && entries.front().exists() && directory.inode == entries.front().inode &&
                      directory.device == entries.front().device;
    uses[i].leads = same ? Leads::here : meta.kind == sys::EntryKind::directory ? Leads::environment : Leads::nowhere;
  }
}

const PrefixUse* find_use(const std::vector<PrefixUse>& uses, const std::string& prefix) {
  const auto found = std::ranges::find(uses, prefix, &PrefixUse::prefix);
  return found == uses.end() ? nullptr : &*found;
}

void note_resolved(EnvironmentState& state, const std::vector<PrefixUse>& uses) {
  for (auto& use : state.prefixes)
    if (const auto* found = find_use(uses, use.prefix)) {
      use.leads = found->leads;
      use.certain = found->certain;
    } else if (use.prefix == state.decision.right) {
      use.leads = Leads::here;
    }
  for (auto& found : state.found)
    if (const auto* use = found.kind == Kind::old_prefix ? find_use(uses, found.detail) : nullptr;
        use != nullptr && use->leads == Leads::here)
      found.kind = Kind::second_prefix;
  std::ranges::stable_sort(state.found, {}, &Found::kind);
}

/// Finds a directory above a generation that keeps its users out. Only generations are checked, since an environment in
/// a home may be private.
void note_closed_above(sys::System& system, EnvironmentState& state) {
  auto above = system.entry({.path = state.path, .follow = true}).resolved;
  const auto generation = in_generation(above);
  if (!generation || !generation->rest.empty())
    return;
  state.shared = generation->name;
  sys::EntryRequest request;
  while (above != "/")
    request.queries.push_back({.path = above = parent_path(above)});
  for (const auto& entry : system.entries(request))
    if (entry.kind == sys::EntryKind::directory && (state.mode & 0055U) != 0 && (entry.mode & 0011U) == 0)
      state.closed_above = entry.path;
}

} // namespace

PrefixDecision decide_prefixes(const std::vector<PrefixUse>& uses, const EnvironmentRequest& request) {
  PrefixDecision decision;
  decision.right = request.prefix;
  if (decision.right.empty()) {
    std::size_t most = 0;
    decision.right = request.path;
    for (const auto& use : uses) // of prefixes with the same number of files the path itself is chosen
      if (use.leads == Leads::here && (use.files > most || (use.files == most && use.prefix == request.path))) {
        decision.right = use.prefix;
        most = use.files;
      }
  }
  const auto named = [&](const std::string& prefix) {
    return std::ranges::find(request.from, prefix) != request.from.end();
  };
  for (const auto& use : uses) {
    if (use.prefix == decision.right || named(use.prefix))
      continue;
    // In `/opt/conda/envs/x` a `/opt/conda` may name the installation, so it is not replaced.
    const bool above = is_under(decision.right, use.prefix);
    const bool ours = !above && (use.certain || use.leads != Leads::environment);
    (ours ? decision.replace : decision.left).push_back(use.prefix);
  }
  for (const auto& prefix : request.from)
    if (prefix != decision.right)
      decision.replace.push_back(prefix);
  std::ranges::sort(decision.replace, [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  });
  return decision;
}

bool others_could_replace(sys::System& system, const std::string& directory) {
  return system.entry({.path = join_path(directory, "program"), .guarded = true}).error_number == EPERM;
}

Diagnoses diagnose_above(sys::System& system, const std::string& path) {
  EnvironmentState state;
  state.path = path;
  state.mode = system.entry({.path = path, .follow = true}).mode;
  note_closed_above(system, state);
  return diagnose(state);
}

Result<EnvironmentState> probe(sys::System& system, const EnvironmentRequest& request, const tree::OnProgress& watch) {
  constexpr std::chrono::minutes k_deadline{1}; // counts only while there is no progress
  auto state =
      tree::watched(request.path, {.deadline = k_deadline}, watch,
                    [&](const sys::ProgressCounters& counters) -> Result<EnvironmentState> {
                      const sys::Files files(system.files().root()); // reads the mount table anew, in this child
                      TRY_ASSIGN(const auto reader, EnvironmentReader::read(files, request.path, counters));
                      auto uses = find_prefixes(reader);
                      if (!uses)
                        return fail(uses.error().code, request.path + ": " + uses.error().message, uses.error().hint);
                      resolve_prefixes(files, request.path, *uses);
                      auto found = read_environment(reader, decide_prefixes(*uses, request), request);
                      note_resolved(found, *uses);
                      return found;
                    });
  if (state && (state->own_group || !state->compiled.empty())) {
    if (auto owner = system.user(std::to_string(state->uid)))
      state->owner = std::move(*owner);
    if (state->own_group && (!state->owner || state->owner->gid != *state->own_group)) {
      state->own_group.reset();
      state->others_write = true;
    }
  }
  if (state && state->uid == 0 && system.identity().uid == 0 &&
      others_could_replace(system, join_path(request.path, "bin")))
    state->others_write = true;
  if (state)
    note_closed_above(system, *state);
  return state;
}

} // namespace sharefs::conda
