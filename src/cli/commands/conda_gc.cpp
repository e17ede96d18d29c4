// sharefs conda gc: generations that nobody needs any more.
#include "base/path.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "cli/commands/conda_generations.hpp"
#include "cli/commands/conda_names.hpp"
#include "cli/exit_code.hpp"
#include "conda/generation_plan.hpp"
#include "conda/running.hpp"
#include "exports/host.hpp"
#include "sys/process/interrupt.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <set>
#include <thread>

namespace sharefs::cli {

namespace {

using conda::SharedEnvironment;
using conda::StoredGeneration;

/// All generations are of shares that were taken back: each original is in its place again.
bool was_taken_back(Context& context, const SharedEnvironment& environment) {
  return std::ranges::all_of(environment.generations, [&](const StoredGeneration& one) {
    const auto noted = std::ranges::find(environment.originals, one.number, &conda::StoredOriginal::number);
    if (noted == environment.originals.end())
      return false;
    const auto entry = context.system.entry({.path = noted->what.path, .links = sys::Links::none});
    return entry.kind == sys::EntryKind::directory && entry.inode == noted->what.inode && noted->counts(entry.uid);
  });
}

/// Also what a `conda share` that was cut off or taken back has left, where there is nothing else of the environment.
Result<SharedEnvironment> environment_or_leftovers(Context& context, const StoreName& where) {
  auto found = conda::probe_environment(context.system, where.store, where.name);
  const bool some = found && !found->entry.exists() && (!found->generations.empty() || !found->unfinished.empty());
  return some && was_taken_back(context, *found) ? found : shared_environment(context, where);
}

/// A client may follow the link to where it led before for as long as it remembers attributes (nfs(5), acdirmax): what
/// is deleted in that time is missing there.
Result<void> wait_for_other_hosts(Context& context, const SharedEnvironment& environment) {
  constexpr std::chrono::seconds k_remembered{62}; // 60 by default, of which both times may lack a part
  constexpr std::chrono::milliseconds k_poll{100};
  const auto exported = exports::read_etab(context.system.files());
  const auto reaches = [&](const exports::Export& one) { return is_under(environment.root.resolved, one.directory); };
  if (!environment.entry.shared && (!exported || std::ranges::none_of(*exported, reaches)))
    return {};
  const std::chrono::seconds since(std::max<std::int64_t>(environment.held - environment.entry.mtime, 0));
  if (since >= k_remembered)
    return {};
  context.console.message(fmt::format("waiting for {} s: other hosts may still follow {} to where it led before",
                                      (k_remembered - since).count(), environment.path()));
  for (const auto end = sys::deadline_in(k_remembered - since); sys::Clock::now() < end;) {
    if (sys::interrupted())
      return fail(ErrorCode::interrupted, "interrupted: nothing was deleted");
    std::this_thread::sleep_for(k_poll); // NOLINT: another host does not wake us
  }
  return {};
}

/// By a word of --forget: HOST, USER@HOST, or USER@ for all hosts. Compared as a whole: both may hold an `@`.
bool is_forgotten(const conda::Use& use, const std::string& word) {
  return word == use.host || (!use.user.empty() && (word == use.user + "@" + use.host || word == use.user + "@"));
}

/// Nothing is deleted where not all uses are known.
Result<void> check_uses(Context& context, const SharedEnvironment& environment) {
  if (environment.unknown_uses.empty())
    return {};
  auto message = fmt::format("who uses `{}` is not known: {}", environment.name, environment.unknown_uses);
  std::map<std::uint32_t, std::size_t> counts;
  for (const auto& use : environment.uses)
    ++counts[use.uid];
  const auto most = std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; });
  if (most == counts.end())
    return fail(ErrorCode::failed, std::move(message), "whoever runs it needs to list that directory");
  const auto user = context.system.user(std::to_string(most->first));
  const auto name = user ? user->name : std::to_string(most->first);
  return fail(ErrorCode::failed, std::move(message),
              fmt::format("most of them are of `{0}`: `find {1} -type f -user {0} -delete`", name,
                          shell_quote(join_path(environment.root.path, "uses"))));
}

/// A generation is deleted by its owner, or by who may write in it: anybody else would take its name away, and fail.
Result<void> keep_those_of_others(Context& context, const SharedEnvironment& environment,
                                  std::vector<conda::Kept>& kept) {
  const auto self = context.system.identity();
  std::string owner;
  bool deletes = false;
  for (auto& [number, reason] : kept) {
    const auto& entry = environment.find(number)->entry;
    if (!reason.empty())
      continue;
    if (self.uid == 0 || entry.uid == self.uid || context.system.entry({.path = entry.path, .access = true}).writable) {
      deletes = true;
      continue;
    }
    const auto user = context.system.user(std::to_string(entry.uid));
    owner = user ? user->name : fmt::format("uid {}", entry.uid);
    reason = fmt::format("it belongs to `{}`, who alone can delete it", owner);
  }
  return owner.empty() || deletes
             ? Result<void>{}
             : fail(ErrorCode::permission,
                    fmt::format("`{}` cannot delete generations of `{}` that belong to `{}`: nothing was changed",
                                self.user, environment.name, owner),
                    fmt::format("run it as `{}`", owner));
}

/// One environment. `seen`: the programs that run here, of all users.
Result<int> collect(Context& context, const Arguments& arguments, const std::string& word,
                    const std::vector<conda::RunningProgram>& seen) {
  std::optional<unsigned> wanted;
  if (const auto given = arguments.value("keep")) {
    const auto number = generation_argument(*given);
    if (!number)
      return fail(ErrorCode::usage, fmt::format("--keep: `{}` is no number from 1 on", *given));
    wanted = *number;
  }
  const auto forgotten = arguments.list("forget");
  const auto live_on_known_hosts = [&](const SharedEnvironment& environment) {
    auto live = live_uses(context, environment);
    std::erase_if(live, [&](const conda::Use& use) {
      return std::ranges::any_of(forgotten, [&](const std::string& one) { return is_forgotten(use, one); });
    });
    for (const auto& programs : {seen, conda::running_programs(context.system)}) // that `conda run` did not start, too
      for (const auto& [pid, in] : programs)
        if (in.name == environment.name && join_path(in.store, ".generations/" + in.name) == environment.root.resolved)
          live.push_back({context.system.identity().hostname, pid, 0, in.number});
    return live;
  };
  std::vector<conda::Kept> kept;
  return change_environment(
      context, word, "nothing is to be deleted",
      [&](const SharedEnvironment& environment) -> Result<plan::Plan> {
        if (auto known = check_uses(context, environment); !known)
          return fail(known.error());
        const bool taken_back = !environment.entry.exists(); // see environment_or_leftovers
        const auto keep =
            taken_back ? 0 : wanted.value_or((*context.config())->conda->settings_of(environment.name).keep);
        const auto live = live_on_known_hosts(environment);
        kept = conda::kept_generations(environment, live, keep);
        if (auto ours = keep_those_of_others(context, environment, kept); !ours)
          return fail(ours.error());
        const bool looks_only = context.flags.dry_run || context.flags.check;
        if (const bool deletes = std::ranges::any_of(kept, &std::string::empty, &conda::Kept::reason);
            deletes && !looks_only)
          if (auto waited = wait_for_other_hosts(context, environment); !waited)
            return fail(waited.error());
        sys::EntryRequest unfinished;
        for (const auto& name : environment.unfinished)
          unfinished.queries.push_back({.path = join_path(environment.root.path, name)});
        auto left = context.system.entries(unfinished);
        const auto self = context.system.identity().uid;
        std::erase_if(left, [&](const sys::Entry& entry) { return self != 0 && entry.uid != self; });
        auto plan = conda::plan_collect(environment, kept, random_letters(6), left);
        for (const auto& name : environment.doubtful)
          plan.notes.push_back(fmt::format("{} is left: it may be somebody's own directory, for others may write in {}",
                                           join_path(environment.root.path, name), environment.root.path));
        for (const auto& [number, reason] : kept)
          if (!reason.empty())
            plan.notes.push_back(fmt::format("generation {} is kept: {}", number, reason));
        std::set<std::string> elsewhere;
        for (const auto& use : live)
          if (use.host != context.system.identity().hostname)
            elsewhere.insert(use.user + "@" + use.host);
        constexpr std::size_t k_shown = 20;
        std::size_t shown = 0;
        for (const auto& whose : elsewhere)
          if (++shown <= k_shown)
            plan.notes.push_back(fmt::format("whether processes of {} still run is known there only; `--forget {}` if "
                                             "they do not",
                                             whose, shell_quote(whose)));
        if (elsewhere.size() > k_shown)
          plan.notes.push_back(fmt::format("and {} more", elsewhere.size() - k_shown));
        const auto old = std::ranges::count_if(environment.uses, [&](const conda::Use& use) {
          return !conda::keeps(context.system, use) && conda::runs(context.system, use) != false;
        });
        if (old > 0)
          plan.notes.push_back(fmt::format("{} older than {} days {} nothing any more; `conda pin` does",
                                           count_of(static_cast<std::size_t>(old), "note"), conda::k_note_days,
                                           old == 1 ? "keeps" : "keep"));
        return plan;
      },
      environment_or_leftovers,
      [&](const SharedEnvironment& now) -> Result<void> { // out of sight: nobody begins with them any more
        if (auto known = check_uses(context, now); !known)
          return known;
        for (const auto& use : live_on_known_hosts(now))
          for (const auto& [number, reason] : kept)
            if (number == use.generation && reason.empty())
              return fail(ErrorCode::busy,
                          fmt::format("{} works with generation {} since", conda::text_of(use), number),
                          "run the command again: it keeps that generation");
        return {};
      });
}

/// What runs here, for a worker, which sees its own user's programs only: one program of each generation.
constexpr std::string_view k_programs = "SHAREFS_CONDA_PROGRAMS";

std::string programs_text(const std::vector<conda::RunningProgram>& programs) {
  std::map<std::string, int> one_of_each;
  for (const auto& [pid, in] : programs)
    one_of_each.try_emplace(conda::generation_path(in.store, in.name, in.number), pid);
  std::vector<std::string> words;
  for (const auto& [path, pid] : one_of_each)
    words.push_back(fmt::format("{}:{}", pid, path));
  return join(words, "\n");
}

std::vector<conda::RunningProgram> programs_in(std::string_view text) {
  std::vector<conda::RunningProgram> programs;
  for (const auto& word : split(text, '\n')) {
    const auto colon = std::min(word.find(':'), word.size());
    int pid = 0;
    std::from_chars(word.data(), word.data() + colon, pid);
    if (auto in = conda::in_generation(std::string_view(word).substr(std::min(colon + 1, word.size()))))
      programs.push_back({pid, std::move(*in)});
  }
  return programs;
}

Result<int> run_gc(Context& context, const Arguments& arguments) {
  const auto section = conda_section(context);
  if (!section)
    return fail(section.error());
  auto programs = conda::running_programs(context.system);
  const auto environment = fmt::format("{}={}", k_programs, programs_text(programs));
  if (auto done = work_as_owner(context, (*section)->store, {.environment = {environment}}); !done || *done)
    return done.map([](const auto& code) { return *code; });
  std::ranges::move(programs_in(context.environment(k_programs).value_or("")), std::back_inserter(programs));
  auto names = arguments.positional;
  if (names.empty())
    names = context.system.entry({.path = conda::generations_path((*section)->store, ""), .follow = true, .list = true})
                .names;
  if (names.size() == 1)
    return collect(context, arguments, names.front(), programs);
  if (context.flags.json)
    return fail(ErrorCode::usage, "--json: one document is of one environment", "name it");
  if (names.empty())
    context.console.message("there is no shared environment");
  std::vector<int> codes;
  for (const auto& name : names) {
    context.console.message(name + ":");
    const auto collected = collect(context, arguments, name, programs);
    if (!collected)
      context.console.error(collected.error());
    codes.push_back(collected ? *collected : exit_code_of(collected.error()));
    if (codes.back() == k_exit_interrupted)
      return k_exit_interrupted;
  }
  if (std::ranges::count(codes, k_exit_pending) > 0)
    return k_exit_pending;
  const auto good = static_cast<std::size_t>(std::ranges::count(codes, k_exit_ok));
  return exit_code_for(good, codes.size() - good);
}

} // namespace

extern const CommandSpec k_conda_gc_command{
    .name = "conda gc",
    .summary = "Delete generations that nobody needs any more",
    .description = "Keeps the present generation, pinned ones, those that a process of `sharefs conda run` uses on any "
                   "host, or any program on this one, and the last `conda.keep`. Also deletes what a command that was "
                   "killed has left. Cannot be "
                   "undone; the plan says what is kept, and why.",
    .example = "sharefs conda gc llm_train --dry-run\n"
               "sharefs conda gc llm_train --keep 1\n"
               "sharefs conda gc                    # of all shared environments",
    .effect = Effect::changes,
    .positional = {.name = "ENV", .help = "shared environments, by their names in the store; all if none is named"},
    .options = {{.names = "--keep", .value = "N", .help = "the last N, instead of `conda.keep`"},
                {.names = "--forget",
                 .value = "HOST",
                 .help = "its processes have ended: the host is gone for good; USER@HOST or USER@: that user's",
                 .repeat = true}},
    .run = run_gc,
};

} // namespace sharefs::cli
