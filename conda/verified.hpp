#pragma once
// STORE/.generations/ENV/verified notes which generation was compared with conda's records, file by file, and found
// good, and when. Also the other checks of `conda verify` for a generation.
#include "base/diagnosis.hpp"
#include "conda/change.hpp"
#include "conda/running.hpp"

namespace sharefs::conda {

/// The note about a generation that was found good.
struct Verified {
  std::int64_t at = 0;     ///< seconds since 1970; 0: there is no note
  std::string fingerprint; ///< of the unchanged tree (tree::survey() with inodes); empty: not known
};
/// Returns one line: the generation's number, the time when it was made, by its record, and the fields of the note.
std::string format_verified(const Generation& generation, const Verified& noted);
/// Parses the note; a note of another generation counts as none. The text is not trusted, because any user who may
/// write in the store may have written it.
Verified parse_verified(std::string_view text, const Generation& generation);

/// Writes the note, which `conda list` shows as VERIFIED, or deletes it if the generation is not good. Does nothing
/// where this user may not write.
void note_verified(sys::System& system, const SharedEnvironment& environment, const Generation& record, bool good,
                   const std::string& fingerprint = {});

/// A generation with its record, its note and its present fingerprint.
struct KnownGeneration {
  SharedEnvironment environment;
  Generation record;
  std::string fingerprint; ///< of its files now: names, modes, sizes, times and inodes; empty: not all could be read
  Verified noted;

  /// True if its files are as they were when they were found good.
  [[nodiscard]] bool is_unchanged() const { return !fingerprint.empty() && noted.fingerprint == fingerprint; }
};
/// Returns nullopt if the generation has no readable record.
std::optional<KnownGeneration> find_known(sys::System& system, const GenerationPath& generation, const plan::Say& say);

/// The result of a check of a generation's images: the one on the share, and the one that root has staged here.
struct CheckedImages {
  std::vector<std::string> good; ///< paths
  Diagnoses found;               ///< SF536: another content than noted
};
/// Reads the images and compares their checksums. `stage`: `conda.stage`.
CheckedImages check_images(sys::System& system, const KnownGeneration& known, const std::string& stage,
                           const plan::Say& say);

} // namespace sharefs::conda
