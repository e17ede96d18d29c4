// The report of a child that a hostile NFS server may have taken over: it is read or refused, and what was read is
// within its bounds. (What libnfs does with the server's own bytes happens in that child: unit test_hostile_server.)
#include "base/text.hpp"
#include "support/fuzz.hpp"
#include "sys/nfs/server_answers.hpp"
#include "sys/process/wire.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

using namespace sharefs;
using namespace sharefs::sys;

namespace {

void check_name(const std::string& name) {
  FUZZ_CHECK(name.size() <= k_max_name);
  FUZZ_CHECK(std::ranges::none_of(name, is_control));
}

void check_exports(const std::vector<ExportListing>& exports) {
  std::size_t entries = exports.size();
  for (const ExportListing& one : exports) {
    check_name(one.directory);
    for (const std::string& client : one.clients)
      check_name(client);
    entries += one.clients.size();
  }
  FUZZ_CHECK(entries <= k_max_entries);
}

void check_report(std::string_view bytes) {
  const auto answers = decode_last(bytes);
  if (!answers)
    return;
  const auto again = decode_last(encode(*answers)); // what is taken is what encode() would have written
  FUZZ_CHECK(again && encode(*again) == encode(*answers));
  check_exports(answers->exports);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  check_report(text);
  check_report(WireWriter().put(text).bytes()); // so that the fuzzer need not find the length of a frame
  return 0;
}
