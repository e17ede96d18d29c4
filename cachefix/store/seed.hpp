#pragma once
// A warm start: what a shared cache holds is copied to the node before the program begins.
#include "base/result.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace sharefs::cachefix {

struct Seeded {
  std::uint64_t files = 0, bytes = 0; ///< copied now; none: `local` holds something already, or `shared` nothing
};

/// Copies the cache at `shared`, its path without links, to `local`, which exists. Caches are code that is run, so
/// nothing is copied where some of it belongs to neither this user nor root, and nothing through links. Each file is
/// read again and compared, and the whole gets its name at once. In a child that is given up when it makes no progress
/// for `deadline`: the share may hang. Errors: `failed` where it does not fit, and those of tree::copy.
Result<Seeded> seed_cache(const std::string& shared, const std::string& local, std::uint64_t keep_free_bytes,
                          std::chrono::milliseconds deadline);

/// Bytes of the files below a shared directory, as far as they can be counted within `deadline`; an error else.
Result<std::uint64_t> size_of_cache(const std::string& shared, std::chrono::milliseconds deadline);

} // namespace sharefs::cachefix
