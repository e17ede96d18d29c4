#pragma once
// conda-meta/NAME-VERSION-BUILD.json: what a package has brought into an environment (conda models/records.py). Written
// by conda, libmamba (without placeholders and modes) and rattler; whoever may write in the environment may have
// written anything. Pure.
#include "base/edit.hpp"
#include "base/result.hpp"
#include "conda/prefix.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::conda {

/// Bytes and files of one record: more than those of the largest packages, with 100,000 files, have.
inline constexpr std::size_t k_record_limit = 64U << 20U, k_most_recorded = 300'000;
/// Of all records of an environment together, of which the largest that are known have a third. They stay in memory.
inline constexpr std::size_t k_all_records_limit = 256U << 20U, k_all_recorded = 1'000'000;

enum class PathType { hardlink, softlink, directory, pyc, entry_point, other };

struct RecordedFile {
  std::string path; ///< below the prefix, normalized
  PathType type = PathType::hardlink;
  std::string sha256 = {};           ///< of the package's file, with the placeholder; 64 hexadecimal digits or empty
  std::string sha256_in_prefix = {}; ///< as it was installed
  std::optional<FileMode> mode = {}; ///< of a file with a placeholder; nullopt also where libmamba wrote the record
  std::string placeholder = {};      ///< of the build; its length is the room in a binary file
  std::optional<std::uint64_t> size = {}; ///< of the package's file

  /// As it should be; empty: not known.
  [[nodiscard]] const std::string& installed() const { return sha256_in_prefix.empty() ? sha256 : sha256_in_prefix; }
  /// The installation put a prefix in.
  [[nodiscard]] bool patched() const { return !sha256_in_prefix.empty() && sha256_in_prefix != sha256; }
  friend bool operator==(const RecordedFile&, const RecordedFile&) = default;
};

struct Record {
  std::string name, version, build;
  bool python_noarch = false;
  std::string package; ///< directory of the unpacked package in the cache (`extracted_package_dir`); may be empty
  std::vector<RecordedFile> files;
  friend bool operator==(const Record&, const Record&) = default;
};

/// `failed`: no JSON, too large, too deep, not a record, or with a path that leads out of the environment.
Result<Record> parse_record(std::string_view json);
/// What RECORD of a distribution of Python lists (PyPA, "Recording installed projects"), which lies in `site_packages`.
/// `failed`: a path leads out of there, as those of programs do, which the guard has none of.
Result<Record> parse_distribution(std::string_view text, const std::string& site_packages);
/// info/paths.json of an unpacked package: what libmamba leaves out of its record, filled in where the checksums agree.
/// Nothing of it is trusted further.
void add_placeholders(Record& record, std::string_view paths_json);

struct NewChecksum {
  std::string path, before, after; ///< of RecordedFile::installed()
};
/// What becomes of the text `json` of a record, byte for byte the same otherwise. nullopt: the values are not found
/// where they should be, or are others' values, too.
std::optional<Edits> checksum_edits(const Record& record, std::string_view json,
                                    const std::vector<NewChecksum>& changes);

} // namespace sharefs::conda
