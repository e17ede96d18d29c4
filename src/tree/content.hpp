#pragma once
// Private to tree: what is in a file. Holes are skipped, and count as the zeros that they stand for.
#include "tree/job.hpp"

namespace sharefs::tree {

struct Hash { ///< XXH3, 128 bits: finds damage, no forgery
  std::uint64_t high = 0, low = 0;
  friend bool operator==(const Hash&, const Hash&) = default;
};
/// Of `size` bytes of an open file. An errno and which of two descriptors it is of.
struct ContentError {
  int error_number = 0;
  bool of_target = false;
};
using Hashed = tl::expected<Hash, ContentError>;

/// From the beginning of `from`, whose fstat is `status`, to the empty file `to`; the hash of what was read. A file
/// that is shorter by now is copied as far as it goes.
Hashed copy_content(Job& job, int from, const struct stat& status, int to);
/// Reads what the file system has, not what this host has cached of it, as far as the kernel allows that.
Hashed hash_content(Job& job, int file, const struct stat& status, bool from_disk);

} // namespace sharefs::tree
