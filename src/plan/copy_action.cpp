// CopyTree: cp(1) to a temporary sibling, synced and counted, then renamed. Every look at either tree is a child's.
#include "base/path.hpp"
#include "base/text.hpp"
#include "plan/perform.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <dirent.h>
#include <filesystem>
#include <fmt/format.h>
#include <memory>

namespace sharefs::plan {

namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// What cp(1) has to bring over, counted without following links.
struct Census {
  std::uint64_t entries = 0, bytes = 0;
  friend bool operator==(const Census&, const Census&) = default;
};

std::string text_of(const Census& census) {
  return fmt::format("{} with {} bytes", count_of(census.entries, "file"), census.bytes);
}

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

/// Counts below the open directory `fd`. `failed` names the path that could not be read.
Result<void> take_census(sys::Fd fd, const std::string& path, Census& census) {
  const std::unique_ptr<DIR, CloseDirectory> directory(::fdopendir(fd.get()));
  if (!directory)
    return fail(errno_error(errno, path));
  [[maybe_unused]] const int owned_by_directory = fd.release();
  const int here = ::dirfd(directory.get());
  for (errno = 0; const dirent* entry = ::readdir(directory.get()); errno = 0) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..")
      continue;
    struct stat status{};
    if (::fstatat(here, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      return fail(errno_error(errno, join_path(path, name)));
    ++census.entries;
    if (!S_ISDIR(status.st_mode)) {
      census.bytes +=
          S_ISREG(status.st_mode) || S_ISLNK(status.st_mode) ? static_cast<std::uint64_t>(status.st_size) : 0;
      continue;
    }
    sys::Fd below(::openat(here, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!below)
      return fail(errno_error(errno, join_path(path, name)));
    if (auto counted = take_census(std::move(below), join_path(path, name), census); !counted)
      return counted;
  }
  return errno == 0 ? Result<void>{} : fail(errno_error(errno, path));
}

Result<Census> census_of(const sys::Location& place, const std::string& path) {
  sys::Fd fd(::openat(place.directory.get(), place.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd)
    return fail(errno_error(errno, path));
  Census census;
  if (auto counted = take_census(std::move(fd), path, census); !counted)
    return fail(counted.error());
  return census;
}

/// The path of a place as the host sees it: cp(1) knows nothing of a root.
Result<std::string> host_path(const sys::Location& place, const std::string& path) {
  std::array<char, PATH_MAX> text{};
  const auto link = "/proc/self/fd/" + std::to_string(place.directory.get());
  const auto size = ::readlink(link.c_str(), text.data(), text.size());
  if (size < 0)
    return fail(errno_error(errno, path));
  return join_path(std::string_view(text.data(), static_cast<std::size_t>(size)), place.name);
}

/// The three places of a copy, in a child.
struct Places {
  sys::Location from, to, unfinished;
};

Result<Places> find_places(const CopyTree& action, const std::string& root) {
  const auto ground = Ground::enter(root, std::nullopt);
  if (!ground)
    return fail(ground.error());
  Places places;
  for (const auto& [path, place] : {std::pair{action.from, &places.from}, std::pair{action.to, &places.to},
                                    std::pair{unfinished_copy(action.to), &places.unfinished}}) {
    auto found = ground->place(path);
    if (!found)
      return fail(found.error());
    *place = std::move(*found);
  }
  return places;
}

/// `work` in a child with what is left of the step's time.
class Budget {
 public:
  explicit Budget(milliseconds whole) : m_end(Clock::now() + whole) {}
  [[nodiscard]] milliseconds left() const {
    return std::max(milliseconds(1), std::chrono::ceil<milliseconds>(m_end - Clock::now()));
  }

 private:
  Clock::time_point m_end;
};

Result<std::string> in_child(const CopyTree& action, const std::string& root, milliseconds deadline,
                             const std::function<Result<std::string>(const Places&)>& work) {
  auto answer = sys::in_child(std::nullopt, deadline, [&]() -> Result<std::string> {
    const auto places = find_places(action, root);
    if (!places)
      return fail(places.error());
    return work(*places);
  });
  if (!answer && answer.error().code == ErrorCode::timeout)
    return fail(ErrorCode::timeout, action.to + ": the copy did not end within " +
                                        format_duration(action.deadline / std::chrono::microseconds(1)));
  return answer;
}

/// "=" if the copy is there already, "+" if it can begin.
Result<std::string> look_at_places(const CopyTree& action, const Places& places) {
  const auto to = look(places.to, action.to);
  if (!to)
    return fail(to.error());
  const auto source = census_of(places.from, action.from);
  if (!source)
    return fail(source.error());
  if (!to->exists)
    return "+";
  if (!to->is_directory())
    return conflict(action.to, "nothing", to->text());
  const auto target = census_of(places.to, action.to);
  if (!target)
    return fail(target.error());
  if (*target != *source)
    return conflict(action.to, "nothing or a copy (" + text_of(*source) + ")",
                    "a directory (" + text_of(*target) + ")");
  return "=";
}

Result<void> remove_unfinished(const Places& places, const std::string& path) {
  const auto name = host_path(places.unfinished, path);
  if (!name)
    return fail(name.error());
  std::error_code error;
  std::filesystem::remove_all(*name, error); // never follows a link
  if (error)
    return fail(errno_error(error.value(), *name));
  return {};
}

/// Everything to disk, compared with the source, and only then under its own name.
Result<std::string> finish(const CopyTree& action, const Places& places) {
  const auto source = census_of(places.from, action.from);
  const auto copied = census_of(places.unfinished, action.to);
  if (!source || !copied)
    return fail(!source ? source.error() : copied.error());
  if (*source != *copied)
    return fail(ErrorCode::conflict,
                action.from + ": changed while it was copied: " + text_of(*source) + ", the copy has " +
                    text_of(*copied),
                "run the command again when nobody writes there");
  const sys::Fd tree(::openat(places.unfinished.directory.get(), places.unfinished.name.c_str(),
                              O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!tree || ::syncfs(tree.get()) != 0)
    return fail(errno_error(errno, action.to));
  if (const int error = rename_exclusively(places.unfinished, places.to); error != 0)
    return error == EEXIST ? conflict(action.to, "nothing", "something") : fail(errno_error(error, action.to));
  if (auto synced = sys::sync_directory(places.to, action.to); !synced)
    return fail(synced.error());
  return "";
}

Result<void> run_cp(const std::string& from, const std::string& to, milliseconds deadline) {
  sys::Command command;
  command.argv = {"cp", "-a", "-T", "--reflink=auto", "--", from, to};
  command.deadline = deadline;
  const auto completed = sys::run_process(command);
  if (!completed)
    return fail(completed.error());
  if (completed->ok())
    return {};
  auto lines = split_lines(to_utf8(completed->err));
  const auto first = lines.empty() ? std::string("no message") : lines.front();
  if (completed->timed_out)
    return fail(ErrorCode::timeout, to + ": copying did not end in time");
  if (lines.size() > 10)
    lines.resize(10);
  return fail(ErrorCode::failed, "copying failed: " + first, {},
              lines.size() > 1 ? join({lines.begin() + 1, lines.end()}, "\n") : "");
}

} // namespace

std::string unfinished_copy(const std::string& to) {
  const auto path = normalize_path(to);
  return join_path(parent_path(path), temporary_name(base_name(path), "copy"));
}

Result<Outcome> act(CopyTree& action, sys::System& system, Phase phase) {
  const Budget budget(action.deadline);
  const auto& root = system.files().root();
  if (phase == Phase::look) {
    const auto answer = in_child(action, root, budget.left(),
                                 [&action](const Places& places) { return look_at_places(action, places); });
    if (!answer)
      return fail(answer.error());
    return *answer == "=" ? Outcome::unchanged : Outcome::done;
  }
  // The three paths as the host sees them, one per line would not do: a path may hold any byte but NUL.
  const auto paths = in_child(action, root, budget.left(), [&action](const Places& places) -> Result<std::string> {
    if (auto removed = remove_unfinished(places, action.to); !removed)
      return fail(removed.error());
    const auto from = host_path(places.from, action.from);
    const auto to = host_path(places.unfinished, action.to);
    if (!from || !to)
      return fail(!from ? from.error() : to.error());
    return *from + '\0' + *to;
  });
  if (!paths)
    return fail(paths.error());
  const auto end = paths->find('\0');
  auto copied = run_cp(paths->substr(0, end), paths->substr(end + 1), budget.left());
  if (copied) {
    const auto finished =
        in_child(action, root, budget.left(), [&action](const Places& places) { return finish(action, places); });
    if (finished)
      return Outcome::done;
    copied = fail(finished.error());
  }
  // As long again at most: what is left lies in the way of nobody, and the next run removes it.
  [[maybe_unused]] const auto cleaned = in_child(action, root, std::min(action.deadline, milliseconds(60'000)),
                                                 [&action](const Places& places) -> Result<std::string> {
                                                   auto removed = remove_unfinished(places, action.to);
                                                   return removed ? Result<std::string>("") : fail(removed.error());
                                                 });
  return fail(copied.error());
}

} // namespace sharefs::plan
