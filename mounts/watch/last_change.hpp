#pragma once
// Reads from the journal what sharefs has done to mounts last: a recovery that was interrupted has to go on, and a
// mount that an administrator has unmounted stays unmounted.
#include "plan/journal.hpp"

#include <map>
#include <set>
#include <string>

namespace sharefs::mounts::watch {

enum class LastChange {
  none,        ///< there was no change, or all of it was done
  interrupted, ///< it was unmounted to be mounted again, but was not mounted again
  unmounted,   ///< it was only unmounted
};

/// Returns the last change of each target that has one. A journal that cannot be read gives nothing.
std::map<std::string, LastChange> read_last_changes(const plan::Journal& journal, const std::set<std::string>& targets);

/// Adds the changes of one entry, for those of `targets` that it is about, and removes them from `targets`. Entries are
/// read newest first, so `targets` are those without a newer change.
void add_last_changes(const plan::JournalEntry& entry, std::set<std::string>& targets,
                      std::map<std::string, LastChange>& changes);

} // namespace sharefs::mounts::watch
