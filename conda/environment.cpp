#include "conda/environment_reader.hpp"

#include "base/argv.hpp"
#include "base/number.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "base/visible.hpp"
#include "conda/running.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fmt/format.h>
#include <set>

namespace sharefs::conda {

namespace {

/// The diagnosis of all paths of a kind. In the message `{}` stands for their number and noun ("3 files").
struct KindText {
  Kind kind;
  const char* name;
  Severity severity;
  std::string_view code, noun, message, hint;
  bool repaired;
};
constexpr std::string_view k_repair = "`sharefs conda verify ENV --repair` corrects it";
constexpr std::array<KindText, 20> k_texts{{
    {Kind::missing, "missing", Severity::error, "SF501", "file", "{} of conda's packages missing",
     "install their packages again: `conda install --force-reinstall NAME`", false},
    {Kind::altered, "altered", Severity::error, "SF502", "file", "{} not as conda's packages have them",
     "if nobody changed them on purpose, pip has overwritten them: install the package again with one of the two",
     false},
    {Kind::bad_record, "bad_record", Severity::error, "SF503", "record", "{} of conda-meta cannot be used",
     "what its package has brought cannot be checked: install the package again", false},
    {Kind::unreadable, "unreadable", Severity::error, "SF504", "path", "{} cannot be read",
     "run it as the owner of the environment, or as root where the server lets root read", false},
    {Kind::changing, "changing", Severity::warning, "SF505", "file", "{} changed while being read",
     "somebody works in the environment: run it again later", false},
    {Kind::old_prefix, "old_prefix", Severity::error, "SF506", "path", "{} with the prefix of another place", k_repair,
     true},
    {Kind::second_prefix, "second_prefix", Severity::warning, "SF507", "path",
     "{} with another path of the same directory as prefix", k_repair, true},
    {Kind::other_prefix, "other_prefix", Severity::warning, "SF508", "file",
     "{} with the prefix of another environment", "if it is not meant: `--repair --from PREFIX` replaces it", false},
    {Kind::no_room, "no_room", Severity::error, "SF509", "file", "{} with a prefix that cannot be replaced",
     "choose a prefix that is not longer, or install its package again", false},
    {Kind::closed, "closed", Severity::error, "SF510", "path",
     "{} that not everybody can read who may enter the environment", k_repair, true},
    {Kind::stale_pyc, "stale_pyc", Severity::warning, "SF511", "compiled file",
     "{} not of the source beside them: every process compiles anew", k_repair, true},
    {Kind::old_checksum, "old_checksum", Severity::warning, "SF512", "file",
     "{} right, but their records have the checksums of another prefix", k_repair, true},
    {Kind::outside_link, "outside_link", Severity::warning, "SF513", "link", "{} out of the environment",
     "what they lead to is not copied or shared with the environment", false},
    {Kind::editable, "editable", Severity::warning, "SF514", "file",
     "{} of editable installs: code outside of the environment",
     "install the project itself: `pip install .` without `-e`", false},
    {Kind::set_id, "set_id", Severity::warning, "SF515", "file", "{} with set-id bits",
     "nothing in an environment needs them: `chmod ug-s`", false},
    {Kind::special, "special", Severity::warning, "SF530", "path", "{} no file: FIFOs, sockets or devices",
     "nothing in an environment needs them, and they are not copied: delete them (`rm`)", false},
    {Kind::foreign, "foreign", Severity::warning, "SF531", "path",
     "{} of another user than the owner of the environment",
     "see whose they are and why they lie there; take them out, or give to the owner what is meant to be in it (`chown "
     "-h`): they are not shared, nor changed by `--repair`",
     false},
    {Kind::nobody, "nobody", Severity::warning, "SF516", "path", "{} of nobody: the owner is not known here",
     "make ids the same on server and clients (`sharefs status`)", false},
    {Kind::nfs_leftover, "nfs_leftover", Severity::info, "SF517", "file",
     "{} deleted, but still open on some host (.nfs*)", "they go away with the processes that use them", false},
    {Kind::unmanaged, "unmanaged", Severity::info, "SF518", "file", "{} of no package of conda (pip, or by hand)", "",
     false},
}};

const KindText& row_of(Kind kind) {
  return k_texts[std::min(static_cast<std::size_t>(kind), k_texts.size() - 1)];
}

} // namespace

std::string first_of(const std::vector<std::string>& names) {
  constexpr std::size_t k_named = 3;
  std::vector<std::string> first;
  for (std::size_t i = 0; i < std::min(names.size(), k_named); ++i)
    first.push_back(visible(names[i]));
  const auto text = join(first, ", ");
  return names.size() <= k_named ? text : fmt::format("{} and {} more", text, names.size() - k_named);
}

const char* to_string(Kind kind) {
  return row_of(kind).name;
}

Diagnoses diagnose_unrepaired(const EnvironmentState& state, bool of_generation) {
  auto rest = state;
  std::erase_if(rest.found, [&](const Found& found) {
    // Closed files with several names or of other owners have no change in `modes`: they stay closed. A new generation
    // has copies of them, which are opened.
    return row_of(found.kind).repaired &&
           (found.kind != Kind::closed || of_generation ||
            std::ranges::binary_search(state.modes, found.path, {}, &plan::FileChange::path));
  });
  return diagnose(rest);
}

std::size_t EnvironmentState::count(Kind kind) const {
  return static_cast<std::size_t>(std::ranges::count(found, kind, &Found::kind));
}

namespace {

/// Returns the cure for a path that cannot be read, by the reason, where another user could not read it either.
std::string_view cure_of_unreadable(const std::string& reason) {
  if (reason == errno_text(EXDEV))
    return "something is mounted there: unmount it, since a mount is no part of an environment";
  if (reason == errno_text(ENAMETOOLONG))
    return "its directories are nested deeper than the system allows: move them out";
  return "";
}

} // namespace

Diagnoses diagnose(const EnvironmentState& state) {
  Diagnoses diagnoses;
  for (const auto& text : k_texts) {
    std::vector<std::string> found;
    std::string_view cure;
    for (const auto& one : state.found)
      if (one.kind == text.kind) {
        cure = text.kind == Kind::unreadable && cure.empty() ? cure_of_unreadable(one.detail) : cure;
        found.push_back(one.path + (one.detail.empty() ? "" : " (" + one.detail + ")"));
      }
    if (found.empty())
      continue;
    auto message = fmt::format(fmt::runtime(text.message), count_of(found.size(), text.noun));
    if (text.kind != Kind::unmanaged)
      message += ": " + first_of(found);
    std::string hint(cure.empty() ? text.hint : cure);
    if (text.repaired)
      hint.replace(hint.find("ENV"), 3, shell_quote(state.path));
    for (const std::string tool : {"`conda install", "`pip install"}) // a generation is changed by an update only
      if (const auto at = hint.find(tool); at != std::string::npos && !state.shared.empty())
        hint.insert(at + 1, "sharefs conda update " + shell_quote(state.shared) + " -- ");
    diagnoses.push_back({text.severity, std::string(text.code), state.path, std::move(message), std::move(hint), ""});
  }
  if (state.packages == 0 && state.count(Kind::unmanaged) > 0)
    diagnoses.push_back({Severity::warning, "SF503", state.path,
                         "conda-meta has no record of a package: nothing can be compared",
                         "if conda made it, its records are lost: install the packages again", ""});
  if (!state.closed_above.empty())
    diagnoses.push_back({Severity::warning, "SF308", state.closed_above,
                         "it lets nobody but its owner through: no other user can run the environment below it",
                         "if others should: `chmod go+x " + shell_quote(state.closed_above) + "`", ""});
  return diagnoses;
}

namespace {

/// Returns the directories to compile: `lib/python3.11` for `lib/python3.11/site-packages/x/__pycache__/y.pyc`.
std::set<std::string> libraries_of(const EnvironmentState& state) {
  std::set<std::string> libraries;
  if (!state.uncompiled.empty())
    libraries.insert(state.uncompiled);
  for (const auto& change : state.compiled) {
    const auto parts = split(change.path, '/');
    if (parts.size() > 2 && parts[1].starts_with("python"))
      libraries.insert(parts[0] + "/" + parts[1]);
  }
  return libraries;
}

void add_changes(plan::Plan& plan, const EnvironmentState& state, std::string why,
                 const std::vector<plan::FileChange>& changes) {
  if (!changes.empty())
    plan.add("", std::move(why), plan::ChangeFiles{state.path, state.device, state.inode, changes});
}

/// Returns 11 for "bin/python3.11"; 0 for a name of another form.
unsigned minor_version(const std::string& python) {
  return parse_number<unsigned>(std::string_view(python).substr(python.rfind('.') + 1)).value_or(0);
}

/// Adds the step that compiles Python files, by the environment's own Python with only its standard library, in the
/// name of its owner. There is no such step where others may have written programs.
void add_compilation(plan::Plan& plan, const EnvironmentState& state) {
  const auto libraries = libraries_of(state);
  if (state.python.empty() || libraries.empty())
    return;
  if (state.others_write) {
    plan.notes.emplace_back(
        "Python is not compiled again: others may write in the environment, and no program of theirs is run");
    return;
  }
  // Python 3.9 has the option `-p`; from 3.14 on compileall's workers start anew, and not by fork().
  constexpr unsigned k_prepends = 9, k_starts_anew = 14;
  const auto version = minor_version(state.python);
  plan::RunTool tool;
  tool.argv = {join_path(state.path, state.python), "-I", "-S", "-m", "compileall", "-q", "-j",
               version < k_starts_anew ? "0" : "1"};
  if (version >= k_prepends) // compiled files then name the path by which they are used
    tool.argv.insert(tool.argv.end(), {"-p", state.decision.right});
  tool.argv.insert(tool.argv.end(), libraries.begin(), libraries.end());
  tool.harmless = true;
  tool.accept = {0, 1}; // it is 1 for Python's own tests, some of which are not valid Python
  tool.deadline = std::chrono::minutes(30);
  // The group of the directory is not used: its owner may not be a member, and would get the rights of that group.
  constexpr std::uint32_t k_no_group = 65534;
  const auto group = state.uid == 0 ? 0 : k_no_group;
  tool.actor = plan::Actor{state.owner.value_or(sys::User{std::to_string(state.uid), state.uid, group, {group}, "/"}),
                           state.path, 0, 0};
  auto identity = state.python_identity;
  identity.changed = 0;
  if (std::ranges::find(state.contents, state.python, &plan::FileChange::path) != state.contents.end())
    identity = identity.owner_only(); // the step before gives it another prefix
  tool.program = sys::CheckedProgram{
      state.path, {.device = state.device, .inode = state.inode}, state.python, identity, state.own_group};
  plan.add("", "Python compiles what was deleted", std::move(tool));
}

/// Returns the changes of modes. Files that get another content in an earlier step are new files then, so only their
/// owner is compared.
std::vector<plan::FileChange> modes_after_contents(const EnvironmentState& state) {
  std::set<std::string_view> rewritten;
  for (const auto& change : state.contents)
    rewritten.insert(change.path);
  auto modes = state.modes;
  for (auto& change : modes)
    if (rewritten.contains(change.path))
      change.identity = change.identity.owner_only();
  return modes;
}

Error is_generation(const EnvironmentRequest& request, const GenerationPath& generation) {
  return {ErrorCode::unsupported,
          fmt::format("{} is generation {} of the shared environment `{}`, in which nothing changes any more",
                      request.path, generation.number, generation.name),
          fmt::format("`sharefs conda verify {} --repair` makes a generation whose files name {}", generation.name,
                      join_path(generation.store, generation.name)),
          ""};
}

} // namespace

plan::Plan plan_repair(const EnvironmentState& state, bool modes, bool live) {
  plan::Plan plan;
  const auto& right = state.decision.right;
  for (const auto& use : state.prefixes)
    if (use.files > 0 && std::ranges::find(state.decision.replace, use.prefix) != state.decision.replace.end())
      plan.notes.push_back(fmt::format("{} instead of {} in {}", right, use.prefix, count_of(use.files, "file")));
  for (auto link : state.links) { // before the files that show which prefix is the old one
    link.path = join_path(state.path, link.path);
    plan.add("", "prefix " + right, std::move(link));
  }
  // The records come last: until then they show which files are as they were installed, if the step is cut off.
  auto contents = state.contents;
  for (auto& change : contents)
    change.round = change.path.starts_with("conda-meta/") ? 2 : change.round;
  std::ranges::stable_sort(contents, {}, &plan::FileChange::round);
  const bool has_records = !contents.empty() && contents.back().round == 2;
  add_changes(plan, state, "prefix " + right + (has_records ? ", and the checksums in conda-meta" : ""), contents);
  if (modes)
    add_changes(plan, state, "as readable as the environment's directory", modes_after_contents(state));
  add_changes(plan, state, "compiled from other sources, or with an old prefix; it comes again", state.compiled);
  if (live)
    add_compilation(plan, state);
  return plan;
}

Result<void> check_relocation(sys::System& system, const EnvironmentRequest& request) {
  const auto& prefix = request.prefix;
  TRY(check_prefix(prefix));
  for (const auto& from : request.from)
    if (is_under(prefix, from) && from != prefix)
      return fail(ErrorCode::unsupported,
                  fmt::format("{} lies below {}: they cannot be told apart in files", prefix, from));
  const auto entries =
      system.entries({.queries = {{.path = request.path, .follow = true}, {.path = prefix, .follow = true}}});
  for (const auto& entry : entries)
    if (entry.kind == sys::EntryKind::unknown)
      return fail(entry.error());
  const auto &here = entries[0], &there = entries[1];
  if (const auto generation = in_generation(here.resolved); generation && generation->rest.empty())
    return fail(is_generation(request, *generation));
  if (here.kind != sys::EntryKind::directory)
    return fail(ErrorCode::not_found, "there is no directory " + request.path,
                "ENV is where the environment lies now, or its name in the store");
  // Two paths lead to the same directory if its device and inode number are the same.
  if (there.exists() && there.device == here.device && there.inode == here.inode)
    return {};
  if (there.exists())
    return fail(ErrorCode::usage, fmt::format("{} is not {}: something else lies there", prefix, request.path));
  return fail(ErrorCode::unsupported,
              fmt::format("the environment does not lie at {} yet, and sharefs does not move it", prefix),
              fmt::format("move it (`mv {0} {1}`), then run `sharefs conda relocate {1} {1}`",
                          shell_quote(request.path), shell_quote(prefix)));
}

Diagnoses diagnose_relocation(const EnvironmentState& state) {
  constexpr std::array<std::string_view, 5> k_in_the_way{"SF503", "SF504", "SF505", "SF508", "SF509"};
  auto found = diagnose(state);
  std::erase_if(found,
                [&](const Diagnosis& one) { return std::ranges::find(k_in_the_way, one.code) == k_in_the_way.end(); });
  for (auto& one : found) // later no script shows any more which prefix such a file may have
    if (one.code == "SF505" && !state.decision.replace.empty())
      one.hint = fmt::format("run it again when nobody works there, with `--from {}`",
                             join(state.decision.replace, " --from "));
  return found;
}

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
                      TRY_ASSIGN(auto reader, EnvironmentReader::read(files, request.path, counters));
                      auto uses = find_prefixes(reader);
                      if (!uses)
                        return fail(uses.error().code, request.path + ": " + uses.error().message, uses.error().hint);
                      resolve_prefixes(files, request.path, *uses);
                      return read_environment(reader, *uses, decide_prefixes(*uses, request), request);
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
