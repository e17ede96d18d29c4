#pragma once
// A warm start: complete datasets of a shared cache are copied to the node before the program begins.
#include "base/result.hpp"
#include "sys/process/wire.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace sharefs::cachefix {

struct Seeded {
  std::size_t datasets = 0;         ///< copied now
  std::uint64_t bytes = 0;          ///< of them
  std::vector<std::string> skipped; ///< why a dataset was not copied: `PATH: reason`
  friend bool operator==(const Seeded&, const Seeded&) = default;
};
template <sys::WireOf<Seeded> S> auto wire_fields(S& s) {
  return std::tie(s.datasets, s.bytes, s.skipped);
}

/// Copies every complete dataset below `shared` that `local` does not have. Complete is a directory with a
/// dataset_info.json and table files that has no `.incomplete` beside it, and whose files do not change while they are
/// copied. A copy is compared with its original byte for byte, and takes its name only then; two at once do not disturb
/// each other. `local` exists. In a child with a deadline: the share may hang. Nothing half is left at an error.
/// Source of the layout: datasets/builder.py, download_and_prepare and incomplete_dir.
Result<Seeded> seed_cache(const std::string& shared, const std::string& local, std::uint64_t keep_free_bytes,
                          std::chrono::milliseconds deadline);

} // namespace sharefs::cachefix
