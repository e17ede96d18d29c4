#pragma once
#include "plan/journal.hpp"

namespace sharefs::test {

/// All at once, newest first.
inline Result<std::vector<plan::JournalEntry>> entries_of(const plan::Journal& journal) {
  std::vector<plan::JournalEntry> entries;
  return journal.for_each([&](plan::JournalEntry entry) { entries.push_back(std::move(entry)); }).map([&] {
    return std::move(entries);
  });
}

} // namespace sharefs::test
