#include "exports/parse.hpp"

#include "base/text.hpp"
#include "exports/lexer.hpp"
#include "exports/settings.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace sharefs::exports {

Diagnosis at(Severity severity, std::string code, const Origin& origin, std::string message, std::string hint) {
  return {severity, std::move(code), origin.text(), std::move(message), std::move(hint), ""};
}

std::span<const Export> first_line(std::span<const Export> exports) {
  std::size_t count = exports.empty() ? 0 : 1;
  while (count < exports.size() && exports[count].line == exports[0].line &&
         exports[count].directory == exports[0].directory)
    ++count;
  return exports.first(count);
}

std::size_t count_directories(std::span<const Export> exports) {
  std::set<std::string_view> directories;
  for (const auto& one : exports)
    directories.insert(one.directory);
  return directories.size();
}

namespace {

constexpr std::string_view k_stops = "exportfs drops this entry and reads no further in this file";

/// A client word taken apart at its parentheses.
struct Parts {
  std::string name;
  std::string list;        ///< the text between the parentheses
  std::size_t list_at = 0; ///< offset of `list` in the word
  std::size_t close = 0;   ///< offset of the first `)`; npos if there is none
  bool has_list = false;
};

Parts split_client(const std::string& word) {
  Parts parts;
  const auto open = word.find('(');
  parts.name = word.substr(0, open);
  if (open == std::string::npos)
    return parts;
  parts.has_list = true;
  parts.list_at = open + 1;
  parts.close = word.find(')', open);
  parts.list = word.substr(open + 1, parts.close == std::string::npos ? parts.close : parts.close - open - 1);
  return parts;
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& name, const std::string& refused)
      : m_lexer(text), m_lines(text, name) {
    constexpr std::ptrdiff_t k_most = 1 << 16; // a limit, since a file may consist of empty lines
    m_file.name = name;
    m_file.text = text;
    m_file.refused = refused;
    m_file.exports.reserve(static_cast<std::size_t>(std::min(k_most, std::count(text.begin(), text.end(), '\n'))));
  }

  ExportsFile run() {
    while (read_line())
      ;
    if (!m_file.lost().empty())
      m_file.diagnoses.push_back(lost_entries(m_file.lost()));
    return std::move(m_file);
  }

 private:
  void diagnose(Severity severity, std::string code, std::size_t offset, std::string message, std::string hint = {}) {
    m_file.diagnoses.push_back(at(severity, std::move(code), m_lines.at(offset), std::move(message), std::move(hint)));
  }

  /// Reports a fault at which exportfs stops reading. The parser goes on with the next line or client, to report the
  /// rest.
  void report_stop(std::string code, std::size_t offset, std::string_view message, std::string hint = {}) {
    diagnose(Severity::error, std::move(code), offset,
             m_file.complete ? fmt::format("{}; {}", message, k_stops) : std::string(message), std::move(hint));
    m_file.complete = false;
  }

  void add(const Word& directory, std::string client, std::vector<std::string> options, Settings settings,
           std::size_t offset) {
    options.insert(options.begin(), m_defaults.begin(), m_defaults.end());
    if (!m_defaults.empty() && settings_of(options) != settings) // one list of both means something else
      options = split_options(summary(settings));
    m_file.exports.push_back({directory.text, std::move(client), std::move(settings), std::move(options),
                              m_lines.at(offset), m_lines.at(directory.begin)});
    if (m_file.complete)
      ++m_file.taken;
  }

  /// Reads one directory with its clients. Returns false at the end of the file.
  bool read_line() {
    m_lexer.skip_lines();
    if (m_lexer.at_end())
      return false;
    Word directory;
    const auto begin = m_lexer.offset();
    switch (m_lexer.next(k_path_limit, directory)) {
    case Lexer::Got::nothing:
      report_stop("SF109", begin, "an empty word (a stray carriage return, or `\"\"`) stands where a directory should",
                  R"(remove it; `sed -i 's/\r$//' FILE` removes carriage returns)");
      m_lexer.skip_rest_of_line();
      return true;
    case Lexer::Got::too_long:
      report_stop("SF109", begin, fmt::format("a directory of {} bytes or more", k_path_limit),
                  "export a directory with a shorter path");
      m_lexer.skip_rest_of_line();
      return true;
    case Lexer::Got::word:
      break;
    }
    check_quotes(directory);
    read_clients(directory);
    return true;
  }

  void check_quotes(const Word& word) {
    if (word.open_quote)
      diagnose(Severity::error, "SF109", word.begin, "a `\"` is not closed: the rest of the file is read as one word",
               "close it, or write `\\042` for a quotation mark in a name");
    if (word.nul)
      diagnose(Severity::error, "SF109", word.begin, "a NUL byte hides the rest of this word",
               "remove it, also where it is written `\\000`");
    else if (word.nul_behind)
      diagnose(Severity::error, "SF109", word.begin, "a NUL byte ends this word, as a blank would",
               R"(remove it; `tr -d '\000' <FILE` removes NUL bytes)");
  }

  /// Reads everything after the directory, up to the end of the line.
  void read_clients(const Word& directory) {
    m_defaults.clear();
    m_applied = {};
    m_client_before.clear();
    for (bool first = true;; first = false) {
      Word word;
      auto got = next_client(word);
      if (got == Lexer::Got::word && word.text.starts_with('-')) {
        if (!read_defaults(word))
          continue;
        first = true; // a line with nothing after its defaults exports to everyone
        got = next_client(word);
        if (got == Lexer::Got::word && word.text.starts_with('-'))
          diagnose(Severity::error, "SF110", word.begin,
                   fmt::format("`{}` is taken for the name of a client: only every other word may begin with `-`",
                               word.text),
                   "write all defaults in one word");
      }
      if (got == Lexer::Got::too_long) {
        report_stop("SF109", word.begin, fmt::format("a client of {} bytes or more", k_client_limit),
                    "its name and its options have to be shorter together");
        m_lexer.skip_rest_of_line();
        return;
      }
      if (got == Lexer::Got::nothing && first) {
        add_everyone(directory);
        continue; // after `""` exportfs reads more clients; at the end of the line it finds none
      }
      if (got == Lexer::Got::nothing) {
        if (!m_lexer.at_line_end())
          diagnose(Severity::error, "SF109", word.begin,
                   "an empty word ends the entry here; what follows is read as a directory", "remove the empty word");
        return;
      }
      check_quotes(word);
      if (!read_client(directory, word))
        return;
    }
  }

  Lexer::Got next_client(Word& word) {
    m_lexer.skip_blanks();
    return m_lexer.next(k_client_limit, word);
  }

  /// Adds an export to everyone, for a line that names no client where one is expected.
  void add_everyone(const Word& directory) {
    auto settings = in_force(m_applied);
    const auto rights = summary(settings);
    diagnose(Severity::warning, "SF102", directory.begin,
             m_defaults.empty()
                 ? fmt::format("`{}` names no client, so everyone gets `{}`", directory.text, rights)
                 : fmt::format("no client stands behind `-{}`, so everyone gets `{}`", join(m_defaults, ","), rights),
             "name the clients, or write `*` to say that everyone is meant");
    add(directory, "*", {}, std::move(settings), directory.begin);
  }

  /// Returns false for a bad option. The caller then reads on after the word, to report the faults of the rest.
  bool read_defaults(const Word& word) {
    const auto list = std::string_view(word.text).substr(1);
    auto options = split_options(list);
    auto applied = read_options(options, word, 1, list);
    if (!applied)
      return false;
    m_applied = std::move(*applied);
    m_defaults.insert(m_defaults.end(), options.begin(), options.end());
    return true;
  }

  /// Returns false if the rest of this line cannot be read.
  bool read_client(const Word& directory, const Word& word) {
    const auto parts = split_client(word.text);
    if (parts.has_list && (parts.close == std::string::npos || parts.close + 1 != word.text.size())) {
      diagnose_list(word, parts);
      m_lexer.skip_rest_of_line();
      return false;
    }
    auto options = split_options(parts.list);
    auto applied = read_options(options, word, parts.list_at, parts.list);
    if (!applied)
      return true;
    auto settings = in_force(std::move(*applied));
    const auto before = std::exchange(m_client_before, parts.has_list ? std::string() : parts.name);
    if (parts.has_list && parts.name.empty())
      diagnose_nameless(directory, word, before, settings);
    if (!parts.name.starts_with('-')) // no host has a name like `-x`; it was reported already
      add(directory, parts.name.empty() ? "*" : parts.name, std::move(options), std::move(settings), word.begin);
    return true;
  }

  /// Reports `(options)` without a name, which were meant for the client before them, but are given to everyone.
  void diagnose_nameless(const Word& directory, const Word& word, const std::string& before, const Settings& settings) {
    if (before.empty()) {
      diagnose(Severity::warning, "SF102", word.begin,
               fmt::format("`{}` names no client before `(`, so everyone gets `{}`", directory.text, summary(settings)),
               fmt::format("name the client, or write `*{}` to say that everyone is meant", word.text));
      return;
    }
    diagnose(Severity::error, "SF101", word.begin,
             fmt::format("the space before `(` gives `{}` only `{}`, and gives everyone `{}`", before,
                         summary(in_force(m_applied)), summary(settings)),
             fmt::format("remove the space: `{}{}`", before, word.text));
  }

  /// Returns the defaults so far with `options` applied; nullopt for a bad option, which is reported. `list` is the
  /// text of the options, which begins at byte `list_at` of the word.
  std::optional<Settings> read_options(const std::vector<std::string>& options, const Word& word, std::size_t list_at,
                                       std::string_view list) {
    const auto offset_of = [&](std::size_t index) {
      std::size_t at = 0; // in the list, after `index` commas
      for (std::size_t i = 0; i < index; ++i)
        at = list.find(',', at) + 1;
      at = std::min(list.find_first_not_of(" \t", at), list.size()) + list_at;
      const auto offsets = m_lexer.offsets_of(word);
      return at < offsets.size() ? offsets[at] : word.begin;
    };
    auto settings = m_applied;
    const auto bad = apply_options(settings, options, m_file.refused);
    if (!bad)
      return settings;
    report_stop(bad->code, offset_of(bad->index), bad->message, bad->hint);
    return std::nullopt;
  }

  /// Reports why the parenthesis does not close at the end of the word; reads ahead on the line to find that out.
  void diagnose_list(const Word& word, const Parts& parts) {
    if (parts.close != std::string::npos) {
      const auto rest = word.text.substr(parts.close + 1);
      const auto at = m_lexer.offsets_of(word)[parts.close + 1];
      const auto good = word.text.substr(0, parts.close + 1);
      if (rest.front() == '#')
        report_stop("SF106", at, "a comment begins only behind a space", fmt::format("write `{} {}`", good, rest));
      else if (rest.front() == ',')
        report_stop("SF106", at, "clients are separated by spaces, not by commas",
                    fmt::format("write `{} {}`", good, rest.substr(1)));
      else
        report_stop("SF106", at, fmt::format("`{}` stands behind the `)` of the options", rest),
                    fmt::format("separate clients by a space: `{} {}`", good, rest));
      return;
    }
    Lexer ahead = m_lexer;
    std::string joined = word.text;
    Word next;
    for (ahead.skip_blanks(); ahead.next(k_client_limit, next) == Lexer::Got::word; ahead.skip_blanks()) {
      if (next.text.find('(') != std::string::npos)
        break; // `next` is another client
      const bool comma = joined.ends_with(',') || joined.ends_with('(') || next.text.find_first_of(",)") == 0;
      joined += (comma ? "" : ",") + next.text; // the blank was meant as a comma
      if (next.text.find(')') == std::string::npos)
        continue;
      report_stop("SF106", word.begin,
                  fmt::format("a space inside the options: `{}` is read as a whole client", word.text),
                  fmt::format("write `{}`", joined));
      return;
    }
    report_stop("SF106", word.begin, fmt::format("`{}` has no `)`", word.text), fmt::format("write `{})`", word.text));
  }

  Lexer m_lexer;
  LineIndex m_lines;
  ExportsFile m_file;
  std::vector<std::string> m_defaults; ///< of this line so far
  Settings m_applied;                  ///< the meaning of `m_defaults`, before in_force()
  std::string m_client_before;         ///< the client before, if it has no options of its own
};

} // namespace

Diagnosis lost_entries(std::span<const Export> lost) {
  constexpr std::size_t k_shown = 5;
  std::vector<std::string> names;
  for (const auto& entry : lost.first(std::min(lost.size(), k_shown)))
    names.push_back(fmt::format("{} to {}", entry.directory, entry.client));
  if (lost.size() > k_shown)
    names.push_back(fmt::format("and {} more", lost.size() - k_shown));
  return at(Severity::error, "SF111", lost.front().line,
            fmt::format("not exported because of the error before it: {}", join(names, ", ")),
            "correct the error above");
}

ExportsFile parse(std::string_view text, const std::string& name, const std::string& refused) {
  return Parser(text, name, refused).run();
}

} // namespace sharefs::exports
