#pragma once
// What sharefs did to mounts last, by its journal: a recovery that was cut off has to go on, and what an administrator
// unmounted stays unmounted.
#include "plan/journal.hpp"

#include <map>
#include <set>
#include <string>

namespace sharefs::mounts::watch {

enum class LastChange {
  none,       ///< nothing, or all of it was done
  cut_off,    ///< it was unmounted to be mounted again, which was not done
  taken_away, ///< it was unmounted, and nothing else was meant
};

/// By target; of those without a change there is nothing. Journals that cannot be read say nothing.
std::map<std::string, LastChange> last_changes(const plan::Journal& journal, const std::set<std::string>& targets);

/// Of one entry: `targets` are those that no newer one is about, and lose what this one is about.
void take_entry(const plan::JournalEntry& entry, std::set<std::string>& targets,
                std::map<std::string, LastChange>& changes);

} // namespace sharefs::mounts::watch
