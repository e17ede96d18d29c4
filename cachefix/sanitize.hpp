#pragma once
// The heart of `sharefs run`: a command line in, the same command line without the race out.
//   words -> launch (launchers/) -> stakes (asked once each) -> decisions, each with its reason -> edits, by position
#include "cachefix/decision.hpp"
#include "cachefix/launchers/walk.hpp"
#include "cachefix/stakes.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sharefs::cachefix {

struct ScriptFound {
  std::size_t index = 0;
  std::string name;
  std::string framework; ///< empty: none that the table knows
  friend bool operator==(const ScriptFound&, const ScriptFound&) = default;
};

/// Which caches are moved.
enum class When {
  always, ///< all that lie on shared storage
  racy,   ///< not those whose file locks exclude other hosts: there moving is a matter of speed
};

struct Rules {
  std::vector<UserRule> user; ///< the first that matches counts
  bool enabled = true;        ///< SHAREFS_CACHEFIX=0 switches all off
  When when = When::always;
  bool seed = false; ///< what is moved gets the complete datasets of the share
  std::vector<std::string> node =
      {}; ///< words that start sharefs on a node: `/usr/bin/sharefs run --node --`; empty: none
};

struct Sanitized {
  Argv argv;                                              ///< what to execute
  std::vector<std::pair<std::string, std::size_t>> chain; ///< launcher, index
  std::vector<ScriptFound> scripts;                       ///< empty: cannot be told for certain
  Decisions decisions;                                    ///< without warnings
  std::map<std::string, std::string> set;                 ///< environment
  std::vector<std::string> directories;                   ///< node-local ones to make before the program starts
  std::map<std::string, std::string> origins; ///< node-local directory -> the shared path that it stands for
  std::vector<ModelLink> links;
  std::vector<FileCopy> copies;
  std::vector<std::string> hosts; ///< that the program starts on besides or instead of this one, as far as known
  Diagnoses diagnoses;
  bool understood = true; ///< false: nothing was changed because some word is not known

  [[nodiscard]] Decisions changes() const;
  [[nodiscard]] Decisions kept() const;
};

/// What a command is started with.
struct Start {
  std::vector<std::string> environment; ///< NAME=value
  std::string directory;
  std::string home; ///< by passwd
};

Sanitized sanitize(const Argv& argv, const Start& start, Stakes& stakes, const Rules& rules);

/// A whole script file: the text with its changes, and `export` lines for the variables that its commands need.
struct ScriptResult {
  std::string text;
  Sanitized sanitized; ///< subjects of diagnoses are `FILE:LINE:COLUMN`
};
ScriptResult sanitize_script(const std::string& file, const std::string& text, const Start& start, Stakes& stakes,
                             const Rules& rules);

/// 12 hexadecimal digits of a text: the same everywhere and always.
std::string key_of(const std::string& text);
/// That of the node-local directory for a shared path.
std::string cache_key(const std::string& shared_path);

/// Adds what is not there yet.
template <class T> void add_once(std::vector<T>& all, T one) {
  if (std::ranges::find(all, one) == all.end())
    all.push_back(std::move(one));
}

} // namespace sharefs::cachefix
