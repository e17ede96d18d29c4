#include "fleet/mirror.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "fleet/engine.hpp"
#include "fleet/script.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <utility>

namespace sharefs::fleet {

namespace {

constexpr std::chrono::hours k_no_limit{24 * 30}; ///< the callers have deadlines of their own
constexpr std::size_t k_most_output = 512U << 20U;
constexpr std::uint64_t k_block = 4096; ///< the usual block size of file systems
constexpr const char* k_partial = ".rsync-partial";

/// Returns scripts/mirror.sh, which runs in front of rsync on the node, as one line: any login shell must pass it on. A
/// link in the path could lead root to another directory: only links of root that nobody else could replace are
/// followed, and the directory itself must not be one. It enters the directory, and rsync works in its working
/// directory, because its name may lead elsewhere by then. The lock of a push is held as long as rsync lives; its files
/// are synced to the disk before the connection ends.
std::string rsync_wrapper() {
  std::string line(trim(k_mirror_script));
  std::ranges::replace(line, '\n', ' ');
  return line;
}

/// Returns the number at the beginning of the text; 0 if there is none.
template <class Number> Number read_leading_number(std::string_view text) {
  Number number{};
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// Copies owners and modes by number, hard links and ACLs; leaves out other file systems that are mounted in the tree.
Argv words_of(const Mirror& mirror, Work work) {
  Argv words{"rsync",         "--archive",         "--acls",
             "--numeric-ids", "--one-file-system", fmt::format("--partial-dir={}", k_partial),
             "--hard-links",  "--sparse"};
  for (const auto& pattern : mirror.exclude)
    words.push_back("--exclude=" + pattern);
  if (work != Work::push)
    words.emplace_back("--dry-run");
  if (mirror.removes || work == Work::compare)
    words.emplace_back("--delete-delay"); // nothing is deleted before all files have arrived
  if (mirror.by_content)
    words.emplace_back("--checksum");
  if (work == Work::compare)
    words.emplace_back("--omit-dir-times"); // the time of a directory with additional files differs anyway
  return words;
}

const std::string k_source = std::string(sys::k_handed_on) + "/"; ///< see run_here()

/// Returns the first of rsync's errors, because the last ones only report that it ended.
std::string find_first_error(std::string_view errors) {
  for (const auto& line : split_lines(errors))
    if (const auto text = trim(line); (text.starts_with("rsync: ") || text.starts_with("file has vanished")) &&
                                      text.find("unexpectedly closed") == std::string_view::npos)
      return to_utf8(text);
  return "";
}

/// Removes the lines that rsync prints about every end of a connection.
std::string remove_rsync_lines(std::string_view errors) {
  std::string kept;
  for (const auto& line : split_lines(errors))
    if (!line.starts_with("rsync") && !line.starts_with("@sharefs "))
      kept += std::string(line) + "\n";
  return kept;
}

/// The next step after a refusal of our own script on the node, by a part of its text. The last row that fits counts.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> k_after_refusal{{
    {"rsync is not installed", "`apt install rsync` there, or `dnf install rsync`"},
    {"is a symbolic link", "a link would lead elsewhere: make it a directory there, or mount the other disk on it"},
    {"was replaced", "somebody exchanges directories there: see who may write above it"},
    {"is no directory", "move it away there"},
    {"another push", "wait for its end: it may come from another machine"},
    {"cannot begin", "`ssh NODE df -h` shows its disks"},
    {"no flock", "install util-linux there"},
}};

std::optional<Outcome> problem_of(const sys::Completed& ended, const Mirror& mirror, const std::string& node) {
  constexpr int k_no_rsync = 127, k_protocol_ended = 12, k_ssh_ended = 255, k_socket = 10, k_refused = 100;
  if (ended.ok())
    return std::nullopt;
  const auto failed = [&](std::string why, std::string_view hint) {
    return Outcome{.node = node, .state = State::failed, .why = std::move(why), .hint = std::string(hint)};
  };
  if (const auto refusal = last_report(parse_reports(ended.err), "failed"); !refusal.empty()) {
    std::string_view next;
    for (const auto& [text, hint] : k_after_refusal)
      if (refusal.find(text) != std::string::npos)
        next = hint;
    return failed(refusal, next);
  }
  if (ended.err.find("No space left on device") != std::string::npos ||
      ended.err.find("Disk quota exceeded") != std::string::npos)
    return failed(fmt::format("{}: its disk is full", mirror.path),
                  "make room there, then push again: files that were copied stay");
  if (ended.err.find("is your shell clean") != std::string::npos)
    return failed("its answer is not rsync's: logging in prints something there, or its rsync is too old",
                  "`ssh NODE true` shows what logging in prints there");
  const auto why = find_first_error(ended.err);
  const bool failed_there = why.find("[receiver]") != std::string::npos || why.find("[generator]") != std::string::npos;
  const std::array connection{k_protocol_ended, k_ssh_ended, k_socket, k_no_rsync, k_refused};
  if (!failed_there && std::ranges::find(connection, ended.exit_code) != connection.end()) {
    const auto words = remove_rsync_lines(ended.err);
    auto outcome = outcome_of({.name = node}, {}, {.exit_code = k_ssh_ended, .errors = words});
    if (trim(words).empty()) {
      outcome.why = "the connection ended before all files were copied";
      outcome.hint = "push again: files that were copied stay";
    }
    return outcome;
  }
  constexpr int k_vanished = 24;
  return failed(why.empty() ? fmt::format("rsync ended with {}", ended.exit_code) : why,
                ended.exit_code == k_vanished ? "it was changed here while it was sent: push again" : "");
}

/// Runs rsync on the directory of the mirror, which its words name k_source: its own name may lead elsewhere by now.
/// The errors name it as the user knows it.
Result<sys::Completed> run_here(sys::System& system, const Mirror& mirror, Argv words, const std::string& path) {
  sys::Command command;
  command.argv = std::move(words);
  command.tree = mirror.path;
  command.environment = {{"LC_ALL", "C"}, {"TZ", "UTC"}};
  if (!path.empty())
    command.environment["PATH"] = path;
  command.deadline = k_no_limit;
  command.ends_with_us = true;
  command.output_limit = k_most_output;
  TRY_ASSIGN(auto ended, system.run(command));
  const std::string_view shown = sys::k_handed_on;
  for (auto at = ended.err.find(shown); at != std::string::npos; at = ended.err.find(shown, at + mirror.path.size()))
    ended.err.replace(at, shown.size(), mirror.path);
  return ended;
}

} // namespace

Result<Difference> measure(sys::System& system, const Mirror& mirror) {
  auto words = words_of(mirror, Work::preview);
  // A dry run does not make this directory, so that rsync reports every file as new.
  words.insert(words.end(), {"--out-format=%i %l", "--", k_source, "/nonexistent/"});
  const auto ended = run_here(system, mirror, std::move(words), "");
  if (!ended)
    return fail(ended.error().code, ended.error().message,
                ended.error().code == ErrorCode::not_found ? "`apt install rsync`, or `dnf install rsync`"
                                                           : ended.error().hint);
  if (!ended->ok())
    return fail(ErrorCode::failed, fmt::format("{}: {}", mirror.path, find_first_error(ended->err)));
  return parse_difference(ended->out);
}

std::uint64_t Difference::room_needed() const {
  return missing_bytes + missing * k_block + largest_changed;
}

std::string Difference::text(std::string_view missing_word, std::string_view extra_word) const {
  std::vector<std::string> parts;
  if (missing > 0)
    parts.push_back(fmt::format("{} {} ({})", missing, missing_word, format_bytes(missing_bytes)));
  if (changed > 0)
    parts.push_back(fmt::format("{} changed ({})", changed, format_bytes(changed_bytes)));
  if (attributes > 0)
    parts.push_back(fmt::format("{} with another mode, owner or time", attributes));
  if (extra > 0)
    parts.push_back(fmt::format("{} {}", extra, extra_word));
  return join(parts, ", ");
}

Difference parse_difference(std::string_view listed) {
  Difference difference;
  constexpr std::size_t k_flags = 11; // "<f.st......"
  while (!listed.empty()) {
    const auto line = listed.substr(0, listed.find('\n'));
    listed.remove_prefix(std::min(line.size() + 1, listed.size()));
    if (line.size() <= k_flags || line[k_flags] != ' ')
      continue;
    const auto flags = line.substr(0, k_flags);
    const auto bytes = read_leading_number<std::uint64_t>(line.substr(k_flags + 1));
    const bool is_new = flags.substr(2).starts_with('+');
    const bool is_sent = flags[0] == '<' || flags[0] == '>';
    if (flags[0] == '*') {
      ++difference.extra;
    } else if (is_new) {
      ++difference.missing;
      difference.missing_files += flags[1] == 'd' ? 0 : 1;
      difference.missing_bytes += is_sent ? bytes : 0;
    } else if (is_sent) {
      ++difference.changed;
      difference.changed_bytes += bytes;
      difference.largest_changed = std::max(difference.largest_changed, bytes);
    } else {
      ++difference.attributes;
    }
  }
  return difference;
}

There parse_there(std::string_view errors) {
  const auto reports = parse_reports(errors);
  There there;
  there.is_missing = reports.contains("missing");
  if (const auto words = split_words(last_report(reports, "room")); words.size() == 3) {
    there.room = read_leading_number<std::uint64_t>(words[0]) * read_leading_number<std::uint64_t>(words[1]);
    there.file_system = words[2];
  }
  return there;
}

Argv rsync_shown(const Mirror& mirror) {
  auto words = words_of(mirror, Work::push);
  words.insert(words.end(), {mirror.path + "/", "NODE:" + mirror.path + "/"});
  return words;
}

Argv rsync_words(const Mirror& mirror, Work work, const Way& way) {
  auto words = words_of(mirror, work);
  const auto before = node_line(
      {"sh", "-c", rsync_wrapper(), "sh", work == Work::push ? "push" : "preview", mirror.name, mirror.path, "rsync"},
      true);
  // mirror.sh finds the directory of the node among rsync's arguments.
  words.insert(words.end(), {"--no-protect-args", "--rsh=" + way.rsh, "--rsync-path=" + before});
  words.emplace_back("--out-format=%i %l");
  if (work == Work::push)
    words.emplace_back("--timeout=600"); // a hung disk on the node sends no error
  words.insert(words.end(), {k_source, way.node + ":./"});
  return words;
}

Result<Compared> run_rsync(sys::System& system, const Mirror& mirror, Work work, const Way& way) {
  TRY_ASSIGN(const auto ended, run_here(system, mirror, rsync_words(mirror, work, way), way.path));
  return Compared{problem_of(ended, mirror, way.node), parse_difference(ended.out), parse_there(ended.err)};
}

} // namespace sharefs::fleet
