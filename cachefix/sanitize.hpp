#pragma once
// The heart of `sharefs run`: a command line and facts in, the same command line without the race out. Pure.
#include "base/argv.hpp"
#include "base/diagnosis.hpp"
#include "cachefix/facts.hpp"
#include "cachefix/rules.hpp"
#include "cachefix/walk.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sharefs::cachefix {

enum class ChangeKind { argument, environment, file };
enum class ChangeAction { rewrite, drop, set, unset };
const char* to_string(ChangeKind kind);
const char* to_string(ChangeAction action);

struct Change {
  ChangeKind kind = ChangeKind::argument;
  std::string flag;                 ///< as it stands in the command line, or the variable's name, or the file
  std::optional<std::size_t> index; ///< of the word with the value, in the original argv
  std::optional<std::string> from, to;
  CacheClass cache_class = CacheClass::node_local;
  ChangeAction action = ChangeAction::rewrite;
  std::string rule, reason;
  friend bool operator==(const Change&, const Change&) = default;
};

struct Kept {
  std::string flag;
  std::optional<std::size_t> index;
  std::string value;
  CacheClass cache_class = CacheClass::never;
  std::string reason;
  friend bool operator==(const Kept&, const Kept&) = default;
};

struct ScriptFound {
  std::size_t index = 0;
  std::string name;
  std::string framework; ///< empty: none that the table knows
  friend bool operator==(const ScriptFound&, const ScriptFound&) = default;
};

/// A symbolic link to make in a node-local directory, so that models on the share are found there.
struct ModelLink {
  std::string path, target;
  friend bool operator==(const ModelLink&, const ModelLink&) = default;
};

/// A changed copy of a file, for programs that read their caches' places from one.
struct FileCopy {
  std::string path, content;
  friend bool operator==(const FileCopy&, const FileCopy&) = default;
};

struct Rules {
  std::vector<UserRule> user; ///< the first that matches counts
  bool enabled = true;        ///< SHAREFS_CACHEFIX=0 switches all off
};

struct Sanitized {
  Argv argv;                                              ///< what to execute
  std::vector<std::pair<std::string, std::size_t>> chain; ///< launcher, index
  std::vector<ScriptFound> scripts;                       ///< empty: cannot be told for certain
  std::vector<Change> changes;
  std::vector<Kept> kept;
  std::map<std::string, std::string> set; ///< environment
  std::set<std::string> unset;
  std::vector<std::string> directories;       ///< node-local ones to make (0700) before the program starts
  std::map<std::string, std::string> origins; ///< node-local directory -> the shared path that it stands for
  std::vector<ModelLink> links;
  std::vector<FileCopy> copies;
  std::vector<std::string> hosts; ///< that the program starts on besides or instead of this one, as far as known
  Diagnoses diagnoses;
  bool understood = true; ///< false: nothing was changed because some word is not known
  Questions questions;    ///< not empty: the rest is not final; answer and call again
};

Sanitized sanitize(const Argv& argv, const Facts& facts, const Rules& rules);

/// The stable name for a text: 12 hexadecimal digits, the same on all nodes.
std::string key_of(const std::string& text);
/// That of the node-local directory for a shared path.
std::string cache_key(const std::string& shared_path);

/// What a Python source shows about its own --cache_dir.
enum class Evidence {
  none,          ///< nothing certain
  datasets_only, ///< no model is loaded with it
  environment,   ///< defaults to None and is only handed on to load_dataset and from_pretrained: may be dropped
};
Evidence evidence_of(const std::string& python_source);

} // namespace sharefs::cachefix
