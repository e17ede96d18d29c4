// Bytes of a hostile NFS server, and of a child that such a server has taken over: they are read or refused; and what
// was read is within its bounds. The first byte says who reads.
#include "base/text.hpp"
#include "support/fuzz.hpp"
#include "sys/nfs/ask_server.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

using namespace sharefs;
using namespace sharefs::sys;

namespace {

void check_name(const std::string& name) {
  FUZZ_CHECK(name.size() <= k_max_name);
  FUZZ_CHECK(std::none_of(name.begin(), name.end(), is_control));
}

void check_exports(const std::vector<ExportListing>& exports) {
  std::size_t entries = exports.size();
  for (const ExportListing& one : exports) {
    check_name(one.directory);
    for (const std::string& client : one.clients)
      check_name(client);
    entries += one.clients.size();
  }
  FUZZ_CHECK(entries <= 2 * k_max_entries);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0)
    return 0;
  const std::string text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  constexpr std::uint32_t xid = 0x30303030; // "0000", which a fuzzer finds
  switch (bytes[0] % 6) {
  case 0:
    if (const auto reply = read_reply(text, xid))
      FUZZ_CHECK(reply->size() <= text.size() && text.ends_with(*reply));
    break;
  case 1:
    if (const auto mappings = read_mappings(text))
      FUZZ_CHECK(mappings->size() * 20 <= text.size());
    break;
  case 2:
    if (const auto exports = read_exports(text))
      check_exports(*exports);
    break;
  case 3:
    if (const auto reply = read_mount_reply(text))
      FUZZ_CHECK(reply->status != 0 || text.size() >= 12);
    break;
  case 4: // the child's report: what is taken is what encode() would have written
    if (const auto answers = decode_last(text)) {
      FUZZ_CHECK(decode_last(encode(*answers)) == answers);
      check_exports(answers->exports);
      FUZZ_CHECK(answers->addresses.empty() ? answers->used == 0 : answers->used < answers->addresses.size());
    }
    break;
  default: // the same, so that the fuzzer need not find the length of a frame
    if (const auto answers = decode_last(WireWriter().put(std::string_view(text)).bytes()))
      check_exports(answers->exports);
  }
  return 0;
}
