#include "fleet/mirror.hpp"

#include "base/text.hpp"
#include "fleet/engine.hpp"
#include "sys/fs/sha256.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>

namespace sharefs::fleet {

namespace {

constexpr std::chrono::hours k_no_limit{24 * 30}; ///< whoever calls this has a deadline
constexpr std::size_t k_most_output = 512U << 20U;
constexpr std::uint64_t k_block = 4096; ///< the usual one of file systems
constexpr std::string_view k_said = "sharefs: ";
constexpr const char* k_partial = ".rsync-partial";

// What runs on the node is one line each, since a login shell of any kind passes it on. k_before_rsync stands in front
// of rsync's own words. A link on the way to the directory would lead root elsewhere: only those of root are followed,
// and the directory itself is none.
constexpr const char* k_before_rsync =
    "work=$1 name=$2 dir=$3 marks=/var/lib/sharefs/mirror; shift 3; "
    "no() { echo \"sharefs: $*\" >&2; exit 100; }; "
    "command -v \"$1\" >/dev/null || no \"no rsync\"; "
    "at=; set -f; IFS=/; "
    "for part in ${dir#/}; do at=$at/$part; "
    "[ ! -L \"$at\" ] || { [ \"$at\" != \"$dir\" ] && [ \"$(stat -c %u \"$at\")\" = 0 ]; } || no \"link $at\"; done; "
    "unset IFS; "
    "[ -d \"$dir\" ] || [ ! -e \"$dir\" ] || no \"not a directory\"; "
    "near=$dir; until [ -d \"$near\" ]; do near=${near%/*}; near=${near:-/}; done; "
    "echo \"sharefs: room $name $(stat -f -c \"%a %S %i\" \"$near\")\" >&2; "
    "[ ! -e \"$marks/$name.begun\" ] || echo \"sharefs: begun $name\" >&2; "
    "[ ! -f \"$marks/$name\" ] || echo \"sharefs: mark $name $(cat \"$marks/$name\")\" >&2; "
    "if [ \"$work\" = push ]; then "
    "mkdir -p \"$dir\" || no \"cannot make $dir\"; "
    "(umask 077; mkdir -p \"$marks\" && : >>\"$marks/$name.lock\") || no \"cannot write to $marks\"; "
    "exec 9>>\"$marks/$name.lock\"; flock -n 9 || no \"another push\"; " // which rsync holds as long as it lives
    "(umask 077; : >\"$marks/$name.begun\" && rm -f \"$marks/$name\") || "
    "no \"cannot write to $marks\"; fi; "
    "exec \"$@\"";
constexpr const char* k_write_mark =
    "umask 077; cd /var/lib/sharefs/mirror || exit 1; "
    "sync -f \"$3\" 2>/dev/null || sync; "
    "printf \"%s\\n\" \"$2\" >\"$1.new\" && mv \"$1.new\" \"$1\" && rm -f \"$1.begun\"";
constexpr const char* k_read_marks = "marks=/var/lib/sharefs/mirror; while [ $# -gt 0 ]; do "
                                     "[ -d \"$2\" ] || echo \"sharefs: gone $1\"; "
                                     "[ ! -e \"$marks/$1.begun\" ] || echo \"sharefs: begun $1\"; "
                                     "[ ! -f \"$marks/$1\" ] || echo \"sharefs: mark $1 $(cat \"$marks/$1\")\"; "
                                     "shift 2; done; echo \"sharefs: end\"";

/// Of the digits at its beginning; 0 for none.
template <class Number> Number leading_number(std::string_view text) {
  Number number{};
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// What both sides must understand alike of a tree: owners and modes by number, hard links and ACLs; not what is
/// mounted in it.
void add_common(Argv& words, const Mirror& mirror) {
  words.insert(words.end(), {"--archive", "--acls", "--numeric-ids", "--one-file-system",
                             fmt::format("--partial-dir={}", k_partial)});
  for (const auto& pattern : mirror.exclude)
    words.push_back("--exclude=" + pattern);
}

Argv words_of(const Mirror& mirror, Work work) {
  Argv words{"rsync"};
  add_common(words, mirror);
  words.emplace_back("--hard-links");
  if (work != Work::push)
    words.emplace_back("--dry-run");
  if (mirror.removes || work == Work::verify)
    words.emplace_back("--delete-delay"); // nothing goes before all is there
  if (mirror.by_content || work == Work::verify)
    words.emplace_back("--checksum");
  if (work == Work::verify)
    words.emplace_back("--omit-dir-times"); // those of a directory with further files differ
  return words;
}

/// A node's line of k_before_rsync or k_read_marks: `WHAT NAME REST`.
struct SaidLine {
  std::string_view what, name, rest;
};
std::vector<SaidLine> lines_said_by_us(std::string_view text) {
  std::vector<SaidLine> lines;
  while (!text.empty()) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const auto at = line.find(k_said);
    if (at == std::string_view::npos)
      continue;
    line.remove_prefix(at + k_said.size());
    SaidLine said;
    for (auto* part : {&said.what, &said.name}) {
      *part = line.substr(0, line.find(' '));
      line.remove_prefix(std::min(part->size() + 1, line.size()));
    }
    said.rest = trim(line);
    lines.push_back(said);
  }
  return lines;
}

/// Of rsync's own errors the first, since the last ones say only that it ended.
std::string first_error(std::string_view errors) {
  for (const auto& line : split_lines(errors))
    if (const auto text = trim(line); (text.starts_with("rsync: ") || text.starts_with("file has vanished")) &&
                                      text.find("unexpectedly closed") == std::string_view::npos)
      return to_utf8(text);
  return "";
}

/// Without what rsync says about every end of a connection.
std::string without_rsyncs_end(std::string_view errors) {
  std::string kept;
  for (const auto& line : split_lines(errors))
    if (!line.starts_with("rsync") && !line.starts_with(k_said))
      kept += std::string(line) + "\n";
  return kept;
}

/// What our own words on the node say against it.
std::optional<std::string> objection(std::string_view errors, const Mirror& mirror, std::string& hint) {
  for (const auto& line : split_lines(errors)) {
    const auto at = line.find(k_said);
    const auto said =
        at == std::string::npos ? "" : std::string(trim(std::string_view(line).substr(at + k_said.size())));
    if (said == "no rsync") {
      hint = "`apt install rsync` there, or `dnf install rsync`";
      return "rsync is not installed there";
    }
    if (said.starts_with("link ")) {
      hint = "a link would lead elsewhere: make it a directory there, or mount the other disk on it";
      return fmt::format("{}: {} is a symbolic link there", mirror.path, said.substr(5));
    }
    if (said == "not a directory") {
      hint = "move it away there";
      return fmt::format("{} is no directory there", mirror.path);
    }
    if (said == "another push") {
      hint = "wait for its end: it may come from another machine";
      return fmt::format("{}: another push to it is at work", mirror.path);
    }
    if (said.starts_with("cannot "))
      return said + " there";
  }
  return std::nullopt;
}

std::optional<Outcome> trouble_of(const sys::Completed& ended, const Mirror& mirror, const std::string& node) {
  constexpr int k_no_rsync = 127, k_protocol_ended = 12, k_ssh_ended = 255, k_socket = 10, k_said_no = 100;
  if (ended.ok())
    return std::nullopt;
  Outcome outcome{.node = node, .state = State::failed};
  if (auto why = objection(ended.err, mirror, outcome.hint)) {
    outcome.why = *why;
    return outcome;
  }
  if (ended.err.find("No space left on device") != std::string::npos ||
      ended.err.find("Disk quota exceeded") != std::string::npos) {
    outcome.why = fmt::format("{}: its disk is full", mirror.path);
    outcome.hint = "make room there, then push again: what has come stays";
    return outcome;
  }
  const std::array connection{k_protocol_ended, k_ssh_ended, k_socket, k_no_rsync, k_said_no};
  if (std::ranges::find(connection, ended.exit_code) != connection.end()) {
    const auto words = without_rsyncs_end(ended.err);
    outcome = outcome_of({.name = node}, {}, {.exit_code = k_ssh_ended, .errors = words});
    if (trim(words).empty())
      outcome.why = "the connection ended before all was there";
    return outcome;
  }
  constexpr int k_vanished = 24;
  outcome.why = first_error(ended.err);
  if (outcome.why.empty())
    outcome.why = fmt::format("rsync ended with {}", ended.exit_code);
  if (ended.exit_code == k_vanished)
    outcome.hint = "it was changed here while it was sent: push again";
  return outcome;
}

sys::Command command_of(Argv words, const std::string& path) {
  sys::Command command;
  command.argv = std::move(words);
  command.environment = {{"LC_ALL", "C"}, {"TZ", "UTC"}};
  if (!path.empty())
    command.environment["PATH"] = path;
  command.deadline = k_no_limit;
  command.ends_with_us = true;
  command.output_limit = k_most_output;
  return command;
}

/// ssh with a command line for the node's shell. `rsh` is a command line already, which the engine's script has quoted.
Result<sys::Completed> run_ssh(sys::System& system, const Way& way, const std::string& line) {
  return system.run(command_of({"sh", "-c", "exec " + way.rsh + " \"$@\"", "sh", way.node, line}, way.path));
}

} // namespace

Listing parse_listing(std::string_view path, std::string_view listed) {
  Listing listing;
  sys::Sha256 hash;
  hash.add(path);
  constexpr std::size_t k_size_at = 12; // behind "cd+++++++++ "
  while (!listed.empty()) {
    const auto line = listed.substr(0, listed.find('\n'));
    listed.remove_prefix(std::min(line.size() + 1, listed.size()));
    if (line.size() <= k_size_at || line[k_size_at - 1] != ' ') // "created directory /nonexistent"
      continue;
    hash.add(line);
    hash.add("\n");
    if (line[1] != 'd')
      ++listing.files;
    if (line[1] == 'f')
      listing.bytes += leading_number<std::uint64_t>(line.substr(k_size_at));
  }
  listing.state = hash.hex();
  return listing;
}

Result<Listing> list_mirror(sys::System& system, const Mirror& mirror) {
  Argv words{"rsync"};
  add_common(words, mirror);
  // Into a directory that is not there, and is not made in a dry run: all is new.
  words.insert(words.end(),
               {"--dry-run", "--out-format=%i %l %M %B %U:%G %n%L", "--", mirror.path + "/", "/nonexistent/"});
  const auto ended = system.run(command_of(words, ""));
  if (!ended)
    return fail(ended.error().code, ended.error().message,
                ended.error().code == ErrorCode::not_found ? "`apt install rsync`, or `dnf install rsync`"
                                                           : ended.error().hint);
  if (!ended->ok())
    return fail(ErrorCode::failed, fmt::format("{}: {}", mirror.path, first_error(ended->err)));
  return parse_listing(mirror.path, ended->out);
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
    const auto bytes = leading_number<std::uint64_t>(line.substr(k_flags + 1));
    const bool is_new = flags.substr(2).starts_with('+');
    const bool is_sent = flags[0] == '<' || flags[0] == '>';
    if (flags[0] == '*') {
      ++difference.extra;
    } else if (is_new) {
      ++difference.missing;
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

std::string format(const Mark& mark) {
  return fmt::format("{} {} {}", mark.state, mark.at, mark.from);
}

std::optional<Mark> parse_mark(std::string_view text) {
  const auto words = split_words(text);
  if (words.size() != 3 || words[0].size() != 64)
    return std::nullopt;
  return Mark{words[0], leading_number<std::int64_t>(words[1]), to_utf8(words[2])};
}

There parse_there(std::string_view said, std::string_view name) {
  There there;
  for (const auto& line : lines_said_by_us(said)) {
    if (line.name != name)
      continue;
    if (line.what == "gone")
      there.gone = true;
    else if (line.what == "begun")
      there.begun = true;
    else if (line.what == "mark")
      there.mark = parse_mark(line.rest);
    else if (const auto words = split_words(line.rest); line.what == "room" && words.size() == 3) {
      there.room = leading_number<std::uint64_t>(words[0]) * leading_number<std::uint64_t>(words[1]);
      there.file_system = words[2];
    }
  }
  return there;
}

Argv rsync_shown(const Mirror& mirror, Work work) {
  auto words = words_of(mirror, work == Work::look ? Work::push : work);
  words.insert(words.end(), {mirror.path + "/", "NODE:" + mirror.path + "/"});
  return words;
}

Argv rsync_words(const Mirror& mirror, Work work, const Way& way) {
  auto words = words_of(mirror, work);
  const auto before = node_line(
      {"sh", "-c", k_before_rsync, "sh", work == Work::push ? "push" : "look", mirror.name, mirror.path, "rsync"},
      true);
  // --secluded-args by its short and older name: the path is no word for the node's shell.
  words.insert(words.end(), {"-s", "--rsh=" + way.rsh, "--rsync-path=" + before});
  words.emplace_back("--out-format=%i %l");
  if (work == Work::push)
    words.emplace_back("--timeout=600"); // a disk there that hangs does not say so
  words.insert(words.end(), {mirror.path + "/", way.node + ":" + mirror.path + "/"});
  return words;
}

Result<Compared> run_rsync(sys::System& system, const Mirror& mirror, Work work, const Way& way) {
  const auto ended = system.run(command_of(rsync_words(mirror, work, way), way.path));
  if (!ended)
    return fail(ended.error());
  return Compared{trouble_of(*ended, mirror, way.node), parse_difference(ended->out),
                  parse_there(ended->err, mirror.name)};
}

Result<std::optional<Outcome>> write_mark(sys::System& system, const Mirror& mirror, const Mark& mark, const Way& way) {
  const auto line = node_line({"sh", "-c", k_write_mark, "sh", mirror.name, format(mark), mirror.path}, true);
  const auto ended = run_ssh(system, way, line);
  if (!ended)
    return fail(ended.error());
  return trouble_of(*ended, mirror, way.node);
}

Result<Marks> read_marks(sys::System& system, const std::vector<Mirror>& mirrors, const Way& way) {
  Argv words{"sh", "-c", k_read_marks, "sh"};
  for (const auto& mirror : mirrors)
    words.insert(words.end(), {mirror.name, mirror.path});
  const auto ended = run_ssh(system, way, node_line(words, true));
  if (!ended)
    return fail(ended.error());
  Marks marks;
  if (ended->out.find("sharefs: end") == std::string::npos)
    marks.trouble = outcome_of({.name = way.node}, {},
                               {.exit_code = ended->exit_code == 0 ? 1 : ended->exit_code, .errors = ended->err});
  for (const auto& mirror : mirrors)
    marks.there.push_back(parse_there(ended->out, mirror.name));
  return marks;
}

} // namespace sharefs::fleet
