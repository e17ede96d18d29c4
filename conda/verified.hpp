#pragma once
// STORE/.generations/ENV/verified: which generation was compared with conda's records, file by file, and found good,
// and when. And what `conda verify` does of a generation beside reading its files.
#include "base/diagnosis.hpp"
#include "conda/change.hpp"
#include "conda/running.hpp"

namespace sharefs::conda {

/// What is noted of a generation that was found good.
struct Verified {
  std::int64_t at = 0;     ///< seconds since 1970; 0: nothing is noted
  std::string fingerprint; ///< by what the tree is known again (tree::survey() with inodes); empty: that is not known
};
std::string verified_path(const std::string& store, const std::string& environment);
/// One line: the generation's number, when it was made by its record, and what is noted.
std::string format_verified(const Generation& generation, const Verified& noted);
/// Whoever may write in the store may have written anything.
Verified parse_verified(std::string_view text, const Generation& generation);

Verified read_verified(sys::System& system, const std::string& store, const std::string& name,
                       const Generation& record);
/// Notes what `conda list` shows as VERIFIED: the generation of this record is good now, or (`good` false) it is not.
/// Nothing is noted where this user may not write.
void note_verified(sys::System& system, const std::string& store, const std::string& name, const Generation& record,
                   bool good, const std::string& fingerprint = {});

/// A generation with its record, and what is known of it.
struct KnownGeneration {
  SharedEnvironment environment;
  Generation record;
  std::string fingerprint; ///< of its files now: names, modes, sizes, times and inodes; empty: not all could be seen
  Verified noted;

  /// Its files are as they were when they were found good.
  [[nodiscard]] bool is_unchanged() const { return !fingerprint.empty() && noted.fingerprint == fingerprint; }
};
/// nullopt: it has no record that can be read.
std::optional<KnownGeneration> find_known(sys::System& system, const GenerationPath& generation, const plan::Say& say);

/// What was found of the images of a generation: of the one on the share, and of the one that root has staged here.
struct CheckedImages {
  std::vector<std::string> good; ///< paths
  Diagnoses found;               ///< SF536: another content than noted
};
/// Reads them, one hash for each. `stage`: `conda.stage`.
CheckedImages check_images(sys::System& system, const KnownGeneration& known, const std::string& stage,
                           const plan::Say& say);

} // namespace sharefs::conda
