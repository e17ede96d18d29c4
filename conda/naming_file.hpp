#pragma once
// A file of an environment that may name prefixes, once it was read: what it is to hold instead. Pure.
#include "conda/prefix.hpp"
#include "conda/records.hpp"

namespace sharefs::conda {

/// What one file is and holds.
struct FileFacts {
  std::string checksum;
  std::vector<bool> holds; ///< which needles
};

struct NamingFile {
  FileFacts facts;
  const RecordedFile* recorded = nullptr; ///< of its package; nullptr: of none
  bool starts = false;                    ///< the prefix in its first lines is to start it
  std::string bytes = {};                 ///< where a prefix may be replaced in it
  bool sound = false;                     ///< as installed, by its record
  bool follows = false;                   ///< its record is to follow what becomes of it
  bool restored = false;                  ///< the package's content comes back from one of the prefixes
  std::string env_prefix = {};            ///< from this one, for which `#!/usr/bin/env` was written
};

/// How often the content may name the prefix, in any encoding; not counted beyond `most`.
std::size_t count_prefix(std::string_view content, const PrefixNeedle& needle, std::size_t most);
/// `needles`: the right prefix, `old` others that it is to replace, and further ones. Finds out whether the package's
/// content comes back from one of the former.
void find_restored(const std::vector<PrefixNeedle>& needles, std::size_t old, NamingFile& file);
/// Those that are to be replaced in it; one of them may be the right one, where another form names it.
std::vector<std::string> prefixes_to_replace(const std::vector<PrefixNeedle>& needles, std::size_t old,
                                             const NamingFile& file);

struct ReplacedPrefixes {
  std::string after;
  Edits edits;                    ///< that make it of what was there
  std::vector<std::string> named; ///< prefixes that it does name
  std::string no_room = {};       ///< why one of them cannot be replaced; empty: all can
};
ReplacedPrefixes replace_in(const NamingFile& file, const std::vector<std::string>& prefixes, const std::string& right);

} // namespace sharefs::conda
