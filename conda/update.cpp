#include "conda/update.hpp"

#include "base/path.hpp"
#include "base/try.hpp"
#include "conda/verified.hpp"
#include "plan/apply.hpp"
#include "sys/process/interrupt.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace sharefs::conda {

namespace {

constexpr mode_t k_write_bits = 0222;

/// Root works as the owner of a store. If root owns the store, this checks that others cannot put programs there, which
/// root would run.
Result<void> check_programs(sys::System& system, const SharedEnvironment& environment) {
  const auto programs = join_path(environment.path(environment.current), "bin");
  if (system.identity().uid != 0 || !others_could_replace(system, programs))
    return {};
  return fail(ErrorCode::permission,
              fmt::format("{} is root's, and others may write there: the command would run their programs as root",
                          environment.store),
              fmt::format("give it to who looks after it, as whom root then works: `chown -R USER {}`",
                          shell_quote(environment.store)));
}

/// Fills the tree of the next generation by running the command.
class UpdateFill {
 public:
  UpdateFill(sys::System& system, const UpdateRequest& request, NewGeneration& making, const plan::Say& say)
      : m_system(system), m_request(request), m_making(making), m_say(say), m_environment(making.environment),
        m_before(place(m_environment.path(m_environment.current))) {
    m_making.tree = place(making.path());
    if (const auto& record = m_environment.find(m_environment.current)->record)
      m_record = *record;
  }

  Result<void> fill() {
    remove_old_scratch(m_system, m_request.scratch, m_say);
    const ScratchTree scratch(m_system, join_path(m_request.scratch, scratch_name(m_system, m_making.record.number)),
                              m_say);
    auto filled = run_in_view(scratch.path());
    if (!filled && m_no_view) {
      m_say.message(
          fmt::format("{}: the command works in a full copy, which is relocated afterwards; to spare the copy, {}",
                      filled.error().message, filled.error().hint));
      filled = run_in_copy();
    }
    return filled && m_request.verify ? verify_result() : filled;
  }

 private:
  [[nodiscard]] tree::Place place(const std::string& path) const {
    return {.path = path, .root = m_system.files().root()};
  }
  [[nodiscard]] mode_t write_bits() const { return m_request.settings.protect ? k_write_bits : 0; }

  /// Runs a command in the same view or copy as the request's command; returns its exit code.
  using Runs = std::function<Result<int>(const Argv&)>;

  /// Returns a command that runs as if the environment at `prefix` were active.
  [[nodiscard]] sys::TerminalCommand command_in(const std::string& prefix, const Argv& command) const {
    auto active = m_request.command;
    active.argv = command;
    active.environment = environment_for_changes(std::move(active.environment), prefix, m_environment.name);
    return active;
  }

  /// Runs the request's command, which has to succeed, and prepares its result (see finish_result()).
  Result<void> run_command(const Runs& runs) {
    const auto code = runs(m_request.command.argv);
    m_no_view = !code && code.error().code == ErrorCode::unsupported;
    if (!code)
      return fail(code.error());
    if (*code != 0)
      return fail(
          sys::interrupted() ? ErrorCode::interrupted : ErrorCode::failed,
          fmt::format("`{}` ended with exit code {}: nothing was changed", shell_join(m_request.command.argv), *code));
    return finish_result(runs);
  }

  Result<void> run_in_view(const std::string& scratch) {
    const auto& files = m_system.files();
    sys::Layers layers;
    layers.parent = m_environment.store;
    layers.name = m_environment.name;
    layers.lower = m_before.path;
    layers.upper = join_path(scratch, "upper");
    layers.work = join_path(scratch, "work");
    for (const auto& mark : protection_marks(m_environment.name, m_record.python))
      layers.removed.push_back(mark.path);
    layers.writable = {"conda-meta"};
    layers.user_namespace = m_request.user_namespace;
    for (const auto& one : m_environment.generations) // their files are often the same as those of the present one
      if (one.number != m_environment.current && one.entry.kind == sys::EntryKind::directory)
        layers.read_only.push_back(one.entry.path);
    for (const auto& directory : {layers.upper, layers.work})
      TRY(files.make_directories(directory, 0700));
    const Runs runs = [&](const Argv& command) {
      return sys::run_in_terminal(command_in(m_environment.path(), command), &layers);
    };
    m_left = layers.upper;
    m_below = m_before.path;
    m_seen = m_environment.path();
    TRY(run_command(runs));
    TRY(set_result_modes(layers.upper)); // the umask of the command may have been another one
    return add_layer(layers.upper);
  }

  /// Runs the command in a full copy at a path of its own, which gets the stable prefix afterwards.
  Result<void> run_in_copy() {
    const ScratchTree guard(m_system, join_path(m_environment.root.path, hidden_name(m_making.record.number)), m_say);
    auto copy = place(guard.path());
    tree::Options options;
    options.own = true;
    options.total_files = m_record.files;
    options.total_bytes = m_record.bytes;
    TRY_ASSIGN(const auto copied, tree::copy(m_before, copy, options, m_say.progress("copying " + m_before.path)));
    copy.device = copied.device;
    copy.inode = copied.inode;
    TRY(tree::set_modes(copy, {}, {})); // the command may write
    for (const auto& mark : protection_marks(m_environment.name, m_record.python))
      if (auto removed = m_system.files().remove(join_path(copy.path, mark.path));
          !removed && removed.error().code != ErrorCode::not_found)
        return fail(removed.error());
    const Runs runs = [&](const Argv& command) { return sys::run_in_terminal(command_in(copy.path, command)); };
    m_left = m_seen = copy.path;
    m_below.clear();
    TRY(run_command(runs));
    TRY(repair_copy(m_system, {copy, m_environment.path(), {copy.path}, true}, m_say));
    TRY(set_result_modes(copy.path));
    return share_files(copy);
  }

  /// Checks that the result of the command is still an environment, adds the guard, and restores the protection marks,
  /// which were hidden from the command.
  Result<void> finish_result(const Runs& runs) {
    for (const auto* name : {"conda-meta", "lib"}) {
      const auto entry = m_system.entry({.path = join_path(m_left, name)});
      if (entry.kind == sys::EntryKind::unknown)
        return fail(entry.error());
      const bool was_there = m_system.entry({.path = join_path(m_before.path, name)}).exists();
      if (was_there && entry.kind != sys::EntryKind::directory && (m_below.empty() || entry.exists()))
        return fail(ErrorCode::failed, fmt::format("`{}` has deleted {} of the environment: nothing was changed",
                                                   shell_join(m_request.command.argv), name));
    }
    TRY(add_guard(runs));
    return restore_marks();
  }

  Result<void> restore_marks() {
    const auto& files = m_system.files();
    TRY_ASSIGN(const auto contents, read_contents(m_system, m_left));
    const auto before = protection_marks(m_environment.name, m_record.python);
    const auto after =
        protection_marks(m_environment.name, contents.python.empty() ? m_record.python : contents.python);
    for (std::size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
      TRY_ASSIGN(const auto text, files.read_if_exists(join_path(m_before.path, before[i].path)));
      if (!text)
        continue;
      const auto path = join_path(m_left, after[i].path);
      TRY(files.make_directories(parent_path(path)));
      const auto there = m_system.entry({.path = path}); // may be a whiteout of the overlay
      TRY(there.exists() ? files.remove(path) : Result<void>{});
      TRY(files.write_if(path, std::nullopt, *text, 0444));
    }
    return {};
  }

  /// Adds the guard to the result of the command. A guard that a user has removed is not added again.
  Result<void> add_guard(const Runs& runs) {
    const auto before = read_contents(m_system, m_before.path);
    const auto after = read_contents(m_system, m_left);
    if (!before || !after)
      return fail(before ? after.error() : before.error());
    const auto directory = guard_directory(after->python.empty() ? before->python : after->python);
    const auto records = guard_records_in(directory);
    const bool same_python = directory == guard_directory(before->python);
    const auto& guard = m_request.settings.guard;
    auto& removed = m_making.record.no_guard;
    removed = records.empty() && (m_record.no_guard || (same_python && has_guard(before->packages)));
    if (removed || guard.empty() || directory.empty())
      return {};
    const auto site = join_path(m_seen, directory);
    for (const auto& record : records)
      if (record != record_in(guard))
        TRY(runs({"rm", "-rf", "--", join_path(site, record)}));
    TRY_ASSIGN(const auto wrote, write_guard(m_system, m_left, m_below, directory, guard));
    if (!wrote)
      return {};
    const auto package = join_path(site, k_guard_package);
    const auto compiled = runs({join_path(m_seen, "bin/python"), "-I", "-S", "-m", "compileall", "-q", package});
    if (!compiled || *compiled != 0) // the guard works, but every start of Python compiles it
      m_say.message("the guard could not be compiled");
    return {};
  }

  /// Returns the records of the guard in `directory` of the command's result.
  [[nodiscard]] std::vector<std::string> guard_records_in(const std::string& directory) const {
    const auto site = join_path(m_left, directory);
    auto names = m_system.entry({.path = site, .list = true}).names;
    if (!m_below.empty())
      for (const auto& name : m_system.entry({.path = join_path(m_below, directory), .list = true}).names)
        if (std::ranges::find(names, name) == names.end())
          names.push_back(name);
    auto records = guard_records(names);
    std::erase_if(records, [&](const std::string& record) { // in a layer a deleted directory is a whiteout
      const auto entry = m_system.entry({.path = join_path(site, record)});
      return entry.exists() && entry.kind != sys::EntryKind::directory;
    });
    return records;
  }

  /// Gives the result of the command the modes and the group of the store.
  Result<void> set_result_modes(const std::string& path) {
    auto tree = place(path);
    const auto entry = m_system.entry({.path = path});
    tree.device = entry.device;
    tree.inode = entry.inode;
    const auto store = m_system.entry({.path = m_environment.store, .follow = true});
    return close_tree(tree, store, m_request.settings.protect);
  }

  /// Makes the new tree of hard links to the files of the present generation.
  Result<tree::CopyReport> link_present() {
    tree::Options options;
    options.removed_mode_bits = write_bits();
    options.link_files = true;
    options.copy_instead = [](const std::string& path, const struct stat& /*status*/) -> Result<bool> {
      return path.starts_with("conda-meta/"); // tools append to `history` there
    };
    auto& made = m_making.tree;
    auto linked = tree::copy(m_before, made, options, m_say.progress("linking " + m_before.path));
    if (linked) { // the inode is noted, because a user who may write in the store could replace the name
      made.device = linked->device;
      made.inode = linked->inode;
    }
    return linked;
  }

  /// Applies the changes of the command, which lie in the upper layer, to the new tree.
  Result<void> add_layer(const std::string& upper) {
    TRY_ASSIGN(const auto linked, link_present());
    tree::Options options;
    options.removed_mode_bits = write_bits();
    options.layer = true;
    TRY_ASSIGN(const auto changed,
               tree::copy(place(upper), m_making.tree, options, m_say.progress("copying what has changed")));
    m_making.record.own_bytes = linked.bytes + changed.bytes;
    return {};
  }

  /// Makes the new tree of the copy. Files that did not change are hard links to those of the present generation.
  Result<void> share_files(const tree::Place& copy) {
    auto& made = m_making.tree;
    const auto linked = link_present();
    if (!linked) { // the files belong to another user, or the file system has no hard links
      m_say.message("nothing is shared with the generation before: " + linked.error().message);
      TRY(tree::remove(made, {}));
      TRY(plan::apply_action(plan::Rename{copy.path, made.path, std::nullopt}, m_system));
      made.device = copy.device;
      made.inode = copy.inode;
      m_making.record.own_bytes = std::numeric_limits<std::uint64_t>::max();
      return {};
    }
    tree::Options options;
    options.remove_others = true;
    TRY_ASSIGN(const auto changed, tree::copy(copy, made, options, m_say.progress("copying what has changed")));
    m_making.record.own_bytes = linked->bytes + changed.bytes;
    return {};
  }

  /// Compares new files with conda's records. The other files come from a generation that was compared already.
  Result<void> verify_result() {
    const EnvironmentRequest request{.path = m_making.path(), .prefix = m_environment.path(), .reading = Reading::own};
    TRY_ASSIGN(const auto state, probe(m_system, request, m_say.progress("reading " + request.path)));
    auto found = diagnose(state);
    std::erase_if(found, [](const Diagnosis& one) { return one.severity != Severity::error; });
    m_say.report(found);
    if (!found.empty())
      return fail(ErrorCode::failed, "the environment that the command left is not sound",
                  "nothing was changed; `--no-verify` takes it as it is");
    m_making.record.files = state.files;
    m_making.record.bytes = state.bytes;
    if (parse_verified(m_environment.verified, m_record).at != 0)
      m_making.sound = true;
    return {};
  }

  sys::System& m_system;
  const UpdateRequest& m_request;
  NewGeneration& m_making;
  const plan::Say& m_say;
  const SharedEnvironment& m_environment;
  Generation m_record; ///< of the present generation; an empty one if there is none
  tree::Place m_before;
  std::string m_left;  ///< the result of the command: the whole environment, or a layer with its changes
  std::string m_below; ///< the tree below the layer; empty: there is no layer
  std::string m_seen;  ///< the path of the whole environment for commands
  bool m_no_view = false;
};

} // namespace

Result<NewGeneration> update(sys::System& system, const UpdateRequest& request, const plan::Say& say) {
  TRY_ASSIGN(auto environment, find_shared(system, request.store, request.name));
  GenerationRequest making;
  making.environment = std::move(environment);
  making.settings = request.settings;
  making.record.command = shell_join(request.command.argv);
  making.record.message = request.message;
  making.fill = [&](NewGeneration& made) -> Result<void> {
    TRY(check_programs(system, made.environment));
    return UpdateFill(system, request, made, say).fill();
  };
  auto made = make_generation(system, making, say);
  if (!made && made.error().code == ErrorCode::interrupted)
    made.error().message = "interrupted: nothing was changed";
  return made;
}

} // namespace sharefs::conda
