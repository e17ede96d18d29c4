#pragma once
// A warm start: complete datasets and modules of a shared cache are copied to the node before the program begins.
#include "base/result.hpp"
#include "sys/process/wire.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace sharefs::cachefix {

struct Seeded {
  std::size_t datasets = 0;         ///< copied now
  std::size_t modules = 0;          ///< packages of code, copied now
  std::uint64_t bytes = 0;          ///< of both
  std::vector<std::string> skipped; ///< why a dataset or a module was not copied: `PATH: reason`
};
template <sys::WireOf<Seeded> S> auto wire_fields(S& s) {
  return std::tie(s.datasets, s.modules, s.bytes, s.skipped);
}

/// Copies every complete dataset below `shared` that `local` does not have. Complete is a directory with a
/// dataset_info.json and table files that has no `.incomplete` beside it, and whose files do not change while they are
/// copied. A copy is read again and compared by hash, and takes its name only then; two at once do not disturb
/// each other. `local` exists. In a child that is given up when it makes no progress for `deadline`: the share may
/// hang. Nothing half is left at an error. Source of the layout: datasets/builder.py, download_and_prepare and
/// incomplete_dir. Where `shared` is a modules cache (datasets_modules, evaluate_modules, transformers_modules), each
/// package of it that `local` does not have is copied as well, in whole: code, so only what belongs to this user or
/// root, and never through a link.
Result<Seeded> seed_cache(const std::string& shared, const std::string& local, std::uint64_t keep_free_bytes,
                          std::chrono::milliseconds deadline);

} // namespace sharefs::cachefix
