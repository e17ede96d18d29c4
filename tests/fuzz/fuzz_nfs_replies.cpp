// Bytes of a hostile NFS server, and of a child that such a server has taken over: they are read or refused; and what
// was read is within its bounds. The first byte says who reads.
#include "base/text.hpp"
#include "support/fuzz.hpp"
#include "sys/nfs/ask_server.hpp"
#include "sys/process/wire.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <sys/socket.h>

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

/// The bytes as a server sends them before it hangs up: record marks, fragments, and what is in them.
void read_from_connection(const std::string& text) {
  int ends[2];
  FUZZ_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
  RpcConnection connection{Fd(ends[0]), ""};
  const Fd server(ends[1]);
  write_all(server.get(), text); // or as much as the kernel takes
  ::shutdown(server.get(), SHUT_WR);
  const auto result = connection.call(k_mount_export, {}, deadline_in(std::chrono::seconds(10)));
  FUZZ_CHECK(!result || result->size() <= text.size());
  if (const auto exports = result.and_then(read_exports))
    check_exports(*exports);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0)
    return 0;
  const std::string text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  constexpr std::uint32_t xid = 0x30303030; // "0000", which a fuzzer finds
  switch (bytes[0] % 7) {
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
  case 5:
    read_from_connection(text);
    break;
  default: // a report again, so that the fuzzer need not find the length of a frame
    if (const auto answers = decode_last(WireWriter().put(std::string_view(text)).bytes()))
      check_exports(answers->exports);
  }
  return 0;
}
