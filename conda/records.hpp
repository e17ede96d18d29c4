#pragma once
// Parses conda-meta/NAME-VERSION-BUILD.json, which lists the files that a package has installed (conda
// models/records.py). conda, libmamba (without placeholders and modes) and rattler write these records; they are not
// trusted, because any user who may write in the environment may have written them. Pure.
#include "base/edit.hpp"
#include "base/result.hpp"
#include "conda/prefix.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::conda {

/// Limits of the bytes and files of one record. The largest packages, with 100,000 files, stay below them.
inline constexpr std::size_t k_record_limit = 64U << 20U, k_most_recorded = 300'000;
/// Limits of all records of an environment together, which stay in memory. The largest known environments have a third.
inline constexpr std::size_t k_all_records_limit = 256U << 20U, k_all_recorded = 1'000'000;

enum class PathType { hardlink, softlink, directory, pyc, entry_point, other };

struct RecordedFile {
  std::string path; ///< below the prefix, normalized
  PathType type = PathType::hardlink;
  std::string sha256 = {};           ///< of the package's file, with the placeholder; 64 hexadecimal digits or empty
  std::string sha256_in_prefix = {}; ///< of the installed file
  std::optional<FileMode> mode = {}; ///< of a file with a placeholder; libmamba's records have none
  std::string placeholder = {};      ///< of the build; its length is the room for a prefix in a binary file
  std::optional<std::uint64_t> size = {}; ///< of the package's file

  /// Returns the checksum that the installed file should have; empty if it is not known.
  [[nodiscard]] const std::string& installed() const { return sha256_in_prefix.empty() ? sha256 : sha256_in_prefix; }
  /// True if the installation has put a prefix into the file.
  [[nodiscard]] bool patched() const { return !sha256_in_prefix.empty() && sha256_in_prefix != sha256; }
  friend bool operator==(const RecordedFile&, const RecordedFile&) = default;
};

struct Record {
  std::string name;
  bool python_noarch = false;
  std::string package; ///< directory of the unpacked package in the cache (`extracted_package_dir`); may be empty
  std::vector<RecordedFile> files;
  friend bool operator==(const Record&, const Record&) = default;
};

/// `failed`: it is no JSON, too large, too deep, no record, or has a path that leads out of the environment.
Result<Record> parse_record(std::string_view json);
/// Parses the RECORD of a Python distribution in `site_packages` (PyPA, "Recording installed projects"). `failed`: a
/// path leads out of `site_packages`, as paths of programs do; the guard, for which this is, has no programs.
Result<Record> parse_distribution(std::string_view text, const std::string& site_packages);
/// Adds modes and placeholders, which libmamba leaves out of its records, from info/paths.json of the unpacked package,
/// for files whose checksums agree. Nothing else in that text is trusted.
void add_placeholders(Record& record, std::string_view paths_json);

struct NewChecksum {
  std::string path, before, after; ///< of RecordedFile::installed()
};
/// Returns the edits that change checksums in the text `json` of a record, and no other byte. nullopt if a checksum is
/// not where it should be, or is also that of a file that does not change.
std::optional<Edits> checksum_edits(const Record& record, std::string_view json,
                                    const std::vector<NewChecksum>& changes);

} // namespace sharefs::conda
