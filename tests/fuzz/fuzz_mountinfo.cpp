// mountinfo: whatever the text, it is read or refused; and what was read keeps its promises.
#include "support/fuzz.hpp"
#include "sys/mounts/mount_table.hpp"

#include "base/path.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

using namespace sharefs;
using namespace sharefs::sys;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  const auto table = MountTable::parse(text);
  if (!table) {
    FUZZ_CHECK(!table.error().message.empty());
    return 0;
  }
  const auto& entries = table->entries();
  const auto is_of_table = [&entries](const MountEntry* entry) {
    return entry == nullptr || (entry >= entries.data() && entry < entries.data() + entries.size());
  };
  for (std::size_t i = 0; i < entries.size() && i < 50; ++i) {
    const MountEntry& entry = entries[i];
    const MountEntry* owner = table->owner_of(entry.target);
    FUZZ_CHECK(is_of_table(owner));
    FUZZ_CHECK(owner == nullptr || is_under(entry.target, owner->target));
    FUZZ_CHECK(owner == nullptr || !owner->deleted);
    const MountEntry* at = table->at(entry.target);
    FUZZ_CHECK(at == nullptr || (at->target == entry.target && at == owner));
    const auto below = table->below(entry.target);
    FUZZ_CHECK(std::find(below.begin(), below.end(), &entry) != below.end());
    for (const MountEntry* one : below)
      FUZZ_CHECK(is_of_table(one) && is_under(one->target, entry.target));
  }
  FUZZ_CHECK(is_of_table(table->owner_of("/a/b c/../d")));
  return 0;
}
