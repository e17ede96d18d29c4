#include "conda/prefix.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "base/visible.hpp"
#include "sys/fs/sha256.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>

namespace sharefs::conda {

namespace {

constexpr auto k_none = std::string_view::npos;
/// The longest first line that installers write for a kernel (conda's core/portability.py, rattler's link.rs).
constexpr std::size_t k_longest_shebang = 127;

std::size_t find_bytes(std::string_view content, std::string_view bytes, std::size_t from) {
  if (from > content.size())
    return k_none;
  const auto* found = static_cast<const char*>(
      ::memmem(content.data() + from, content.size() - from, bytes.data(), bytes.size())); // far faster than find()
  return found == nullptr ? k_none : static_cast<std::size_t>(found - content.data());
}

std::vector<char32_t> code_points(std::string_view utf8) {
  std::vector<char32_t> points;
  for (std::size_t at = 0; at < utf8.size();) {
    const auto first = static_cast<unsigned char>(utf8[at]);
    const std::size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    char32_t point = length == 1 ? first : first & (0x7FU >> length);
    for (std::size_t i = 1; i < length && at + i < utf8.size(); ++i) // a new prefix may be no UTF-8
      point = point << 6U | (static_cast<unsigned char>(utf8[at + i]) & 0x3FU);
    points.push_back(point);
    at += length;
  }
  return points;
}

std::string encode(std::string_view utf8, std::size_t width, bool big_endian) {
  if (width == 1)
    return std::string(utf8);
  std::string bytes;
  bytes.reserve(width * utf8.size());
  const auto put = [&](char32_t unit) {
    for (std::size_t i = 0; i < width; ++i)
      bytes += static_cast<char>(unit >> 8U * (big_endian ? width - 1 - i : i) & 0xFFU);
  };
  for (const char32_t point : code_points(utf8))
    if (width == 2 && point > 0xFFFF) {
      put(0xD800 + ((point - 0x10000) >> 10U));
      put(0xDC00 + ((point - 0x10000) & 0x3FFU));
    } else {
      put(point);
    }
  return bytes;
}

char32_t unit_at(std::string_view content, std::size_t at, const PrefixNeedle::Encoding& encoding) {
  char32_t unit = 0;
  // At the end of the content there may be less than a character, after a match in the wrong byte order.
  for (std::size_t i = 0; i < std::min(encoding.width, content.size() - at); ++i)
    unit |= static_cast<char32_t>(static_cast<unsigned char>(content[at + i]))
            << 8U * (encoding.big_endian ? encoding.width - 1 - i : i);
  return unit;
}

bool is_name(char32_t unit) {
  return (unit >= 'a' && unit <= 'z') || (unit >= 'A' && unit <= 'Z') || (unit >= '0' && unit <= '9') || unit == '_' ||
         unit == '-' || unit == '+' || unit == '~' || unit == '@' || unit >= 0x80;
}

/// Bytes of the longest part of a path.
constexpr std::size_t k_longest_part = 255;

/// True if the name goes on after the match: `/data/llm2`, `/data/llm.old`, but not `in /data/llm.`
bool goes_on(std::string_view content, std::size_t end, const PrefixNeedle::Encoding& encoding) {
  const auto left = content.size() - end;
  if (left == 0)
    return false;
  const auto unit = unit_at(content, end, encoding);
  return is_name(unit) ||
         (unit == '.' && left >= 2 * encoding.width && is_name(unit_at(content, end + encoding.width, encoding)));
}

/// True if the path begins before the match: `/mnt/data/llm`, `$ROOT/data/llm`, but not `-L/data/llm` and
/// `file:///data/llm`.
bool begins_before(std::string_view content, std::size_t begin, const PrefixNeedle::Encoding& encoding) {
  const auto width = encoding.width;
  if (begin < width)
    return false;
  const auto before = [&](std::size_t units) { return unit_at(content, begin - units * width, encoding); };
  if (const auto unit = before(1); unit == '.' || unit == '}' || unit == ')')
    return true;
  std::size_t units = 0;
  while (units < k_longest_part && (units + 1) * width <= begin &&
         (is_name(before(units + 1)) || before(units + 1) == '.'))
    ++units;
  if (units == 0 || (units + 1) * width > begin)
    return false;
  const auto unit = before(units + 1);
  return unit == '/' || unit == '$' || unit == '%';
}

std::size_t next_match(std::string_view content, const PrefixNeedle::Encoding& encoding, std::size_t from) {
  for (auto at = find_bytes(content, encoding.bytes, from); at != k_none;
       at = find_bytes(content, encoding.bytes, at + encoding.bytes.size()))
    if (!goes_on(content, at + encoding.bytes.size(), encoding) && !begins_before(content, at, encoding))
      return at;
  return k_none;
}

std::string replace_all_in(std::string_view content, const PrefixNeedle::Encoding& from, const std::string& to) {
  std::string result;
  std::size_t done = 0;
  for (auto at = next_match(content, from, 0); at != k_none; at = next_match(content, from, done)) {
    result.append(content.substr(done, at - done)).append(to);
    done = at + from.bytes.size();
  }
  return result.append(content.substr(done));
}

/// The first lines of a script, which start its interpreter, without the last line end.
struct Head {
  std::size_t length = 0; ///< bytes of the lines
  std::string space;      ///< between `#!` and the path
  std::string executable; ///< the program that the lines start
  std::string options;    ///< with the blank before them
};

/// The two lines that rattler writes: a shell runs them, and to Python they are a string that has no effect. conda's
/// and distlib's own form has a third line, and is kept.
constexpr std::string_view k_any_exec = "#!/bin/sh\n'''exec' ";
constexpr std::string_view k_exec_begin = "#!/bin/sh\n'''exec' \"";
constexpr std::string_view k_exec_end = " \"$0\" \"$@\" #'''";

std::optional<Head> head_of(std::string_view content) {
  if (content.starts_with(k_exec_begin)) {
    const auto length = std::min(content.find('\n', k_exec_begin.size()), content.size());
    const auto line = content.substr(0, length);
    const auto quote = line.find('"', k_exec_begin.size());
    if (line.ends_with(k_exec_end) && quote < length - k_exec_end.size() + 1)
      return Head{length, "", std::string(line.substr(0, quote).substr(k_exec_begin.size())),
                  std::string(line.substr(quote + 1, length - k_exec_end.size() - quote - 1))};
  }
  if (!content.starts_with("#!"))
    return std::nullopt;
  const auto line = content.substr(0, content.find('\n'));
  const auto begin = line.find_first_not_of(' ', 2);
  if (begin == k_none || line[begin] != '/')
    return std::nullopt;
  std::size_t end = begin;
  while (end < line.size() && line[end] != '\t' && line[end] != '\r' &&
         (line[end] != ' ' || line[end - 1] == '\\')) // `\ ` belongs to the path
    ++end;
  return Head{line.size(), std::string(line.substr(2, begin - 2)), std::string(line.substr(begin, end - begin)),
              std::string(line.substr(end))};
}

/// True for the name of a Python interpreter, to which the lines of k_exec_begin are a string: `python3.11`, `pypy3`,
/// but not `python-config`.
bool is_python(std::string_view name) {
  for (const std::string_view known : {"python", "pypy"})
    if (name.starts_with(known) && name.find_first_not_of("0123456789.", known.size()) == k_none)
      return true;
  return false;
}

std::string format_head(const Head& head, const PrefixChange& change) {
  auto line = "#!" + head.space + head.executable + head.options;
  if (change.as_built || (line.size() <= k_longest_shebang && head.executable.find(' ') == std::string::npos))
    return line;
  const auto name = base_name(head.executable);
  if (is_python(name)) // `env` would start the first Python in PATH, and take options for a part of its name
    return std::string(k_exec_begin) + head.executable + "\"" + head.options + std::string(k_exec_end);
  return "#!/usr/bin/env " + name + head.options;
}

/// Returns the edit of the head; nullopt if its program is not in the prefix, so that it is replaced like other text.
std::optional<Edit> head_edit(std::string_view content, const PrefixChange& change,
                              const PrefixNeedle::Encoding& from) {
  auto head = head_of(content);
  if (!head)
    return std::nullopt;
  const auto env = std::string_view(head->options).substr(std::min<std::size_t>(1, head->options.size()));
  if (change.env_is_prefix && head->executable == "/usr/bin/env" && !env.empty()) {
    const auto end = std::min(env.find_first_of(" \t\r"), env.size());
    head->executable = change.to + "/bin/" + std::string(env.substr(0, end));
    head->options = std::string(env.substr(end));
  } else if (is_under(head->executable, change.from)) {
    head->executable.replace(0, change.from.size(), change.to);
  } else {
    return std::nullopt;
  }
  head->options = replace_all_in(head->options, from, change.to);
  return Edit{0, std::string(content.substr(0, head->length)), format_head(*head, change)};
}

/// Returns the edit that adds quotes in `'''exec' PATH ...` for a prefix with a space: distlib writes none if it needs
/// none.
std::optional<Edit> unquoted_exec_edit(std::string_view content, const PrefixChange& change) {
  if (change.to.find(' ') == std::string::npos || !content.starts_with(k_any_exec))
    return std::nullopt;
  const auto rest = content.substr(k_any_exec.size());
  const auto path = rest.substr(0, rest.find_first_of(" \n"));
  if (!is_under(path, change.from))
    return std::nullopt;
  return Edit{k_any_exec.size(), std::string(path),
              '"' + change.to + std::string(path.substr(change.from.size())) + '"'};
}

Edits text_edits(std::string_view content, const PrefixChange& change, const PrefixNeedle& needle) {
  Edits edits;
  if (auto head = head_edit(content, change, needle.encodings().front()))
    edits.push_back(std::move(*head));
  else if (auto exec = unquoted_exec_edit(content, change))
    edits.push_back(std::move(*exec));
  const auto begin = edits.empty() ? 0 : edits.front().offset + edits.front().before.size();
  if (!edits.empty() && edits.front().before == edits.front().after)
    edits.clear();
  for (const auto& from : needle.encodings()) {
    const auto to = encode(change.to, from.width, from.big_endian);
    for (auto at = next_match(content, from, begin); at != k_none;
         at = next_match(content, from, at + from.bytes.size()))
      edits.push_back({at, from.bytes, to});
  }
  return edits;
}

bool is_zero(std::string_view bytes) {
  return bytes.find_first_not_of('\0') == k_none;
}

/// Returns the edit of the string in a binary file that begins with the match at `at`.
Result<std::optional<Edit>> string_edit(std::string_view content, const PrefixChange& change,
                                        const PrefixNeedle::Encoding& from, std::size_t at) {
  auto end = at + from.bytes.size();
  while (end + from.width <= content.size() && !is_zero(content.substr(end, from.width)))
    end += from.width;
  if (end + from.width > content.size()) { // without a NUL it is no string, and conda leaves it, too
    if (change.guessed)
      return fail(ErrorCode::unsupported, "the prefix stands in no string");
    return std::nullopt;
  }
  const auto old = content.substr(at, end - at);
  if (change.guessed && std::ranges::any_of(old, [&](char byte) { return from.width == 1 && is_control(byte); }))
    return fail(ErrorCode::unsupported, "the prefix stands in something else than a string");
  std::size_t count = 0;
  for (std::size_t match = next_match(content.substr(0, end), from, at); match != k_none;
       match = next_match(content.substr(0, end), from, match + from.bytes.size()))
    ++count;
  const auto to = encode(change.to, from.width, from.big_endian);
  // The match at the front was checked with the bytes before it, so it is replaced here without another check.
  auto text = to + replace_all_in(old.substr(from.bytes.size()), from, to);
  if (text.size() <= old.size()) {
    text.append(old.size() - text.size(), '\0');
    return Edit{at, std::string(old), std::move(text)};
  }
  const auto more = text.size() - old.size();
  const auto slot = change.slot * from.width;
  const auto room = slot > from.bytes.size() ? count * (slot - from.bytes.size()) : 0;
  if (more > room || end + more + from.width > content.size() || !is_zero(content.substr(end, more + from.width)))
    return fail(ErrorCode::unsupported,
                change.slot == 0
                    ? fmt::format("it is not known whether there is room for a prefix of more than {} bytes",
                                  change.from.size())
                    : fmt::format("there is room for a prefix of {} bytes, not of {}",
                                  std::max(change.slot, change.from.size()), change.to.size()));
  return Edit{at, std::string(content.substr(at, old.size() + more)), std::move(text)};
}

Result<Edits> binary_edits(std::string_view content, const PrefixChange& change, const PrefixNeedle& needle) {
  Edits edits;
  for (const auto& from : needle.encodings()) {
    std::size_t next = 0;
    for (auto at = next_match(content, from, 0); at != k_none; at = next_match(content, from, next)) {
      TRY_ASSIGN(auto edit, string_edit(content, change, from, at));
      next = at + (edit ? edit->before.size() : from.bytes.size());
      if (edit)
        edits.push_back(std::move(*edit));
    }
  }
  return edits;
}

std::uint32_t little_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i)
    number |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + i])) << 8U * i;
  return number;
}

} // namespace

FileMode guessed_mode(std::string_view content) {
  if (content.find('\0') == k_none)
    return FileMode::text;
  for (const std::size_t width : {2U, 4U})
    for (const bool big_endian : {false, true}) {
      if (content.size() % width != 0)
        continue;
      std::size_t plain = 0, units = 0;
      for (std::size_t at = 0; at < content.size(); at += width, ++units) {
        const auto unit = unit_at(content, at, {width, big_endian, ""});
        if (unit == 0)
          break;
        plain += unit >= ' ' && unit < 0x7F ? 1 : 0;
      }
      if (units * width == content.size() && plain * 2 > units)
        return FileMode::text;
    }
  return FileMode::binary;
}

PrefixNeedle::PrefixNeedle(std::string prefix) : m_prefix(std::move(prefix)) {
  for (const auto& [width, big_endian] :
       std::array<std::pair<std::size_t, bool>, 5>{{{1, false}, {2, false}, {2, true}, {4, false}, {4, true}}})
    if (width == 1 || is_utf8(m_prefix))
      m_encodings.push_back({width, big_endian, encode(m_prefix, width, big_endian)});
}

bool PrefixNeedle::in(std::string_view content) const {
  // Almost no content has the prefix, so this avoids searches: without a zero byte there are no wide characters, and
  // the two byte orders of a prefix share all bytes but the zeros at the ends, so that one search rules out both.
  const bool may_be_wide = content.find('\0') != k_none;
  std::string_view missing;
  return std::ranges::any_of(m_encodings, [&](const Encoding& encoding) {
    const auto ends = encoding.width - 1;
    const auto common =
        std::string_view(encoding.bytes).substr(encoding.big_endian ? ends : 0, encoding.bytes.size() - ends);
    if (common == missing || (encoding.width > 1 && !may_be_wide))
      return false;
    if (find_bytes(content, common, 0) != k_none)
      return next_match(content, encoding, 0) != k_none;
    missing = common;
    return false;
  });
}

std::size_t PrefixNeedle::reach() const {
  return m_encodings.back().bytes.size() + m_encodings.back().width * (k_longest_part + 3);
}

Result<void> check_prefix(std::string_view prefix) {
  const auto wrong = [&](const char* what) {
    return fail(ErrorCode::usage, fmt::format("`{}` cannot be a prefix: {}", visible(prefix), what));
  };
  if (!prefix.starts_with('/') || normalize_path(prefix) != prefix)
    return wrong("it is not an absolute path without `.`, `..` and slashes that say nothing");
  if (path_depth(prefix) < 2)
    return wrong("it is too near to the root directory");
  if (prefix.find_first_of("\"'`$\\") != k_none || std::ranges::any_of(prefix, is_control))
    return wrong("it has a quote, a `$`, a backslash or a control character");
  if (prefix.size() > 1024)
    return wrong("it is longer than 1024 bytes");
  return {};
}

Result<Edits> prefix_edits(std::string_view content, const PrefixChange& change) {
  if (change.from == change.to && !change.env_is_prefix)
    return Edits{};
  const PrefixNeedle needle(change.from);
  TRY_ASSIGN(auto edits, change.mode == FileMode::text ? text_edits(content, change, needle)
                                                       : binary_edits(content, change, needle));
  // A string of UTF-16 may match in both byte orders, at overlapping places; the first match counts.
  std::ranges::stable_sort(edits, {}, &Edit::offset);
  std::uint64_t end = 0;
  std::erase_if(edits, [&](const Edit& edit) {
    const bool overlaps = edit.offset < end;
    end = overlaps ? end : edit.offset + edit.before.size();
    return overlaps;
  });
  return edits;
}

bool restores_package(std::string_view content, PrefixChange change, const std::string& sha256) {
  change.as_built = true;
  const auto edits = prefix_edits(content, change);
  const auto before = edits ? apply_edits(content, *edits) : std::nullopt;
  return before && sys::sha256(*before) == sha256;
}

std::vector<std::string> interpreter_of(std::string_view head) {
  const auto words = [](std::string_view program, std::string_view options) {
    std::vector<std::string> found{std::string(program)};
    if (const auto argument = trim(options); !argument.empty()) // the kernel passes all options as one argument
      found.emplace_back(argument);
    return found;
  };
  auto exec = head.starts_with(k_any_exec) ? head.substr(k_any_exec.size()) : std::string_view();
  exec = exec.substr(0, std::min(exec.find(" \"$0\" \"$@\""), exec.find('\n')));
  const bool quoted = exec.starts_with('"');
  if (const auto end = quoted ? exec.find('"', 1) : std::min(exec.find(' '), exec.size()); end != k_none && end > 0)
    return words(exec.substr(quoted ? 1 : 0, quoted ? end - 1 : end), exec.substr(quoted ? end + 1 : end));
  const auto script = head_of(head);
  return script ? words(script->executable, script->options) : std::vector<std::string>();
}

std::vector<std::string> named_prefixes(std::string_view head) {
  constexpr std::array<std::string_view, 5> k_of_system{"/usr", "/usr/local", "/opt", "/bin", "/sbin"};
  std::vector<std::string> found;
  const auto add = [&](std::string_view prefix) {
    const std::string name(prefix);
    if (check_prefix(name) && std::ranges::find(k_of_system, name) == k_of_system.end() &&
        std::ranges::find(found, name) == found.end())
      found.push_back(name);
  };
  const auto add_program = [&](std::string_view path) { // PREFIX/bin/NAME
    const auto slash = path.rfind('/');
    if (slash != k_none && path.substr(0, slash).ends_with("/bin"))
      add(path.substr(0, slash - 4));
  };
  if (const auto script = interpreter_of(head); !script.empty())
    add_program(script.front());
  for (const auto& line : split_lines(head))
    if (line.starts_with("prefix=/"))
      add(trim(std::string_view(line).substr(7)));
  return found;
}

bool is_compiled(std::string_view path) {
  return path.ends_with(".pyc");
}

std::string source_of(std::string_view pyc) {
  constexpr std::string_view k_directory = "__pycache__/";
  const auto slash = pyc.rfind('/');
  if (slash == std::string_view::npos || !pyc.substr(0, slash + 1).ends_with(k_directory))
    return {};
  const auto name = pyc.substr(slash + 1);
  const auto above = pyc.substr(0, slash + 1 - k_directory.size());
  return std::string(above) + std::string(name.substr(0, name.find('.'))) + ".py";
}

bool is_stale(std::string_view header, std::int64_t mtime, std::uint64_t size) {
  if (header.size() < 16 || little_endian(header, 4) != 0)
    return header.size() < 16;
  return little_endian(header, 8) != static_cast<std::uint32_t>(mtime) ||
         little_endian(header, 12) != static_cast<std::uint32_t>(size);
}

} // namespace sharefs::conda
