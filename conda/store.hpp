#pragma once
// The store: the directory on the share that holds the environments. Looked at before any link is made, because a link
// into a share that is not mounted looks to conda as if the environment had been deleted.
#include "base/diagnosis.hpp"
#include "sys/system.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace sharefs::conda {

/// A mount that this host should have: the store may lie on one.
struct Share {
  std::string name;
  std::string at;
  friend bool operator==(const Share&, const Share&) = default;
};

struct StoreRequest {
  std::string store;                     ///< absolute, normalized
  std::vector<std::string> environments; ///< valid names
  std::vector<Share> shares;
  std::vector<sys::User> readers; ///< who may be able to look where root is squashed
};

struct StoredEnvironment {
  std::string name;
  sys::PathKind kind = sys::PathKind::unknown; ///< of STORE/NAME, links followed
  int error_number = 0;
  sys::PathKind meta = sys::PathKind::unknown; ///< of its conda-meta
  std::uint32_t mode = 0;
  std::uint64_t device = 0, inode = 0;
  friend bool operator==(const StoredEnvironment&, const StoredEnvironment&) = default;
};

struct StoreState {
  enum class Condition {
    usable,
    not_mounted, ///< its share's mount point has no mount
    missing,
    not_directory,
    no_answer,  ///< the deadline passed
    unreadable, ///< refused to all who tried; environments could not be checked
    failed,     ///< another errno, e.g. ESTALE
  };
  Condition condition = Condition::failed;
  std::string path;
  std::string share;    ///< name of the share that it lies on by sharefs.yaml; empty: none
  std::string share_at; ///< and its mount point
  std::string owner;    ///< mount point of the file system that it lies on now
  std::string owner_type;
  int error_number = 0;
  std::uint64_t device = 0, inode = 0;
  std::vector<std::string> entries; ///< what it holds, for "did you mean"
  std::vector<StoredEnvironment> environments;
  friend bool operator==(const StoreState&, const StoreState&) = default;
};

/// Mount table first, then the directories in a child with a deadline (3 s). A store that root may not read
/// (root_squash) is read as one of the readers. Error only if the mount table cannot be read.
Result<StoreState> probe_store(sys::System& system, const StoreRequest& request);

/// SF301 to SF305. Errors are what stops a link from being made.
Diagnoses diagnose_store(const StoreState& state);

} // namespace sharefs::conda
