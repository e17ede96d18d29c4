// A recording of a stranger: whatever the text, it is read or refused, and what is asked of it is answered or refused.
#include "support/fuzz.hpp"
#include "sys/recorded_system.hpp"
#include "watch/performance.hpp"

#include <cstdint>

using namespace sharefs;
using namespace sharefs::sys;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const auto recording = Recording::parse({reinterpret_cast<const char*>(bytes), size});
  if (!recording) {
    FUZZ_CHECK(recording.error().code == ErrorCode::config &&
               recording.error().message.find(": ") != std::string::npos);
    return 0;
  }
  RecordedSystem system(nullptr, *recording);
  const auto table = system.mounts();
  if (table)
    for (const auto& mount : table->entries()) {
      FUZZ_CHECK(mount.target.starts_with('/'));
      (void)table->owner_of(mount.target);
    }
  const auto entry = system.entry({.path = "/a", .follow = true, .read_bytes = 10});
  FUZZ_CHECK(entry.kind <= EntryKind::unknown);
  (void)system.files().read("/a", 9);
  (void)system.identity();
  (void)system.now();
  (void)system.user("u");
  for (const auto& stage : system.probe_nfs({.host = "h", .paths = {}}).stages)
    FUZZ_CHECK(stage.outcome <= StageOutcome::skipped);
  (void)watch::probe(system);
  const auto same = [](const std::string& text) { return text; };
  FUZZ_CHECK(Recording::parse((*recording)->text(same)).has_value());
  return 0;
}
