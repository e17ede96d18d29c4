// mountstats: whatever the text, it is read or refused; and what was read can be judged.
#include "support/fuzz.hpp"
#include "watch/performance.hpp"

#include <cstdint>
#include <string>

using namespace sharefs::watch;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const auto mounts = sharefs::sys::parse_mountstats({reinterpret_cast<const char*>(bytes), size});
  if (!mounts) {
    FUZZ_CHECK(mounts.error().message.starts_with("mountstats"));
    return 0;
  }
  Reading reading;
  for (const auto& one : *mounts)
    reading.mounts.push_back({since(one, mounts->front()), {}, "10.0.0.1"});
  for (const auto& one : diagnose(reading, {{"10.0.0.1", std::chrono::microseconds(1)}}))
    FUZZ_CHECK(!one.code.empty() && !one.message.empty());
  return 0;
}
