#pragma once
// The store: the directory on the share that holds the environments. Checked before any link is made, because a link
// into a share that is not mounted looks to conda as if the environment had been deleted.
#include "base/diagnosis.hpp"
#include "sys/system.hpp"

#include <optional>
#include <string>
#include <vector>

namespace sharefs::conda {

/// A mount of sharefs.yaml.
struct Share {
  std::string name;
  std::string at;
  bool served_here = false; ///< by this host, where nothing needs to be mounted
  friend bool operator==(const Share&, const Share&) = default;
};
/// The share with the deepest mount point above the path; nullptr: none.
const Share* share_of(const std::string& path, const std::vector<Share>& shares);

struct StoreRequest {
  std::string store;                     ///< absolute, normalized
  std::vector<std::string> environments; ///< valid names
  std::vector<Share> shares;
  std::vector<sys::User> readers; ///< who may be able to read it where root is squashed
};

struct StoredEnvironment {
  std::string name;
  sys::Entry entry; ///< STORE/NAME, links followed
  sys::Entry meta;  ///< its conda-meta
};

struct StoreState {
  sys::Entry entry;           ///< links followed, with its names; nothing but the path is known while `unmounted` is set
  std::optional<Share> share; ///< that it should lie on
  bool unmounted = false;     ///< nothing is mounted at share->at
  std::vector<StoredEnvironment> environments;
};

/// A store that root may not read (root_squash) is read as one of the readers.
StoreState probe_store(sys::System& system, const sys::MountTable& mounts, const StoreRequest& request);

/// SF301 to SF305. Errors are what stops a link from being made.
Diagnoses diagnose_store(const StoreState& state);

} // namespace sharefs::conda
