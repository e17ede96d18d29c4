#pragma once
// Replaces the prefixes in one file of an environment that was read. Pure.
#include "conda/prefix.hpp"
#include "conda/records.hpp"

namespace sharefs::conda {

/// The checksum of one file, and the prefixes in it.
struct FileFacts {
  std::string checksum;
  std::vector<bool> holds; ///< for each needle, whether the file holds it
};

struct NamingFile {
  FileFacts facts;
  const RecordedFile* recorded = nullptr; ///< in the record of its package; nullptr: it belongs to none
  bool starts = false;                    ///< its first lines name the prefix to start a program
  std::string bytes = {};                 ///< the content; empty if no prefix can be replaced in it
  bool sound = false;                     ///< it is as installed, by the checksum in its record
  bool follows = false;                   ///< the checksum in its record is changed with the file
  bool restored = false;                  ///< with the placeholder for one of the prefixes it is the package's file
  std::string env_prefix = {};            ///< that prefix, if `#!/usr/bin/env` was written for it
};

/// Counts how often the content may name the prefix in any encoding, and stops above `most`.
std::size_t count_prefix(std::string_view content, const PrefixNeedle& needle, std::size_t most);
/// Sets `restored`: checks whether the content is the package's if the placeholder replaces one of the first prefixes.
/// `needles` holds the right prefix, `old` prefixes that it shall replace, and others.
void find_restored(const std::vector<PrefixNeedle>& needles, std::size_t old, NamingFile& file);
/// Returns the prefixes to replace in the file. One may be the right prefix itself, if `#!/usr/bin/env` stands for it.
std::vector<std::string> prefixes_to_replace(const std::vector<PrefixNeedle>& needles, std::size_t old,
                                             const NamingFile& file);

struct ReplacedPrefixes {
  std::string after;              ///< the new content
  Edits edits;                    ///< turn the old content into `after`
  std::vector<std::string> named; ///< prefixes that the old content names
  std::string no_room = {};       ///< the reason why one of them cannot be replaced; empty: all can
};
/// Replaces `prefixes` by `right`, in this order. Stops at the first one that cannot be replaced.
ReplacedPrefixes replace_in(const NamingFile& file, const std::vector<std::string>& prefixes, const std::string& right);

} // namespace sharefs::conda
