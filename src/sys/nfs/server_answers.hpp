#pragma once
// The report of the child that asks one address of a server: numbers and bounded names, for which the parent has the
// words. A server that takes the child over gains no more than to lie about itself.
#include "sys/net/addresses.hpp"
#include "sys/nfs/nfs_probe.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::sys {

/// Why something got no answer, or not the one that was hoped for.
enum class Fault : std::uint8_t {
  none,
  unasked,
  no_such_name,
  name_service,
  connection,    ///< was not made: `error_number`, ETIMEDOUT when the deadline passed
  timeout,       ///< connected, but no answer
  closed,        ///< the connection ended before the answer
  unsupported,   ///< the server does not offer the program or version
  refused,       ///< the server takes the call, but not from us
  unreadable,    ///< what it sent cannot be read
  unregistered,  ///< the portmapper does not know the program
  nothing,       ///< the list of exports is empty
  not_asked,     ///< we could not ask: `error_number`
  only_kerberos, ///< of a path: neither AUTH_SYS nor AUTH_NONE
  status,        ///< of a path: `error_number` is a mountstat3, which has the numbers of errno and of NFS 4
};
struct ServerAnswer {
  Fault fault = Fault::none; ///< `none`: as it should be
  int error_number = 0;
  std::chrono::microseconds round_trip{0}; ///< of a stage
  friend bool operator==(const ServerAnswer&, const ServerAnswer&) = default;
};
/// The server has answered, be it that there is no such thing.
inline bool is_answer(const ServerAnswer& answer) {
  return answer.fault == Fault::none || answer.fault == Fault::only_kerberos || answer.fault == Fault::status;
}

inline constexpr std::size_t k_stage_count = 8;          ///< of ProbeStage
inline constexpr std::size_t k_max_answers = 32U << 20U; ///< bytes of all that a child reports
inline constexpr std::size_t k_max_entries = 100'000;    ///< of a list, clients of all exports together
inline constexpr std::size_t k_max_name = 1024;          ///< MNTPATHLEN of RFC 1813

struct AddressAnswers {
  std::vector<ServerAnswer> stages = std::vector<ServerAnswer>(k_stage_count, {Fault::unasked});
  std::uint16_t mountd_port = 0; ///< as the portmapper says; 0: not registered
  std::vector<ExportListing> exports;
  std::vector<ServerAnswer> access; ///< of the first of access_paths(), by mountd or else by version 4

  [[nodiscard]] ServerAnswer& operator[](ProbeStage stage) { return stages[static_cast<std::size_t>(stage)]; }
  [[nodiscard]] const ServerAnswer& operator[](ProbeStage stage) const {
    return stages[static_cast<std::size_t>(stage)];
  }
};

/// The paths whose access is asked for: those of the request, or else every export.
std::vector<std::string> access_paths(const NfsProbeRequest& request, const std::vector<ExportListing>& exports);

/// In a child: give up all privileges, ask, and write what is known to `fd` after each stage. Never longer than
/// request.timeout.
void ask_address(const NfsProbeRequest& request, const Address& address, const NfsPorts& ports, int fd);

/// As ask_address() writes it.
std::string encode(const AddressAnswers& answers);
/// The last whole report among the bytes of a child, if each of its fields is one that ask_address() could have
/// written.
std::optional<AddressAnswers> decode_last(std::string_view bytes);

/// In a few words: "no answer within 2 s", "the server closed the connection".
std::string describe(const ServerAnswer& answer);
/// A stage that failed, with the words for what happened, why it usually does, and what usually helps; `port` is the
/// one that was asked.
StageResult failed_stage(ProbeStage stage, const ServerAnswer& answer, std::uint16_t port);

} // namespace sharefs::sys
