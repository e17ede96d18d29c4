#pragma once
// What the child that asks one address of a server reports: numbers and bounded names, for which the parent has the
// words. A server that takes the child over gains no more than to lie about itself.
#include "sys/net/addresses.hpp"
#include "sys/nfs/nfs_probe.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace sharefs::sys {

/// Why something got no answer, or not the one that was hoped for.
enum class Fault : std::uint8_t {
  none,
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
struct Failure {
  Fault fault = Fault::none;
  int error_number = 0;
  friend bool operator==(const Failure&, const Failure&) = default;
};
template <class T> using Answer = tl::expected<T, Failure>;

inline constexpr std::size_t k_stage_count = 8;          ///< of ProbeStage
inline constexpr std::size_t k_max_answers = 32U << 20U; ///< bytes of all that a child reports
inline constexpr std::size_t k_max_entries = 100'000;    ///< of a list, clients of all exports together
inline constexpr std::size_t k_max_name = 1024;          ///< MNTPATHLEN of RFC 1813

struct StageAnswer {
  bool asked = false;
  Failure failure; ///< `none`: as it should be
  std::chrono::microseconds round_trip{0};
};

struct AddressAnswers {
  std::array<StageAnswer, k_stage_count> stages;
  std::uint16_t mountd_port = 0; ///< as the portmapper says; 0: not registered
  std::vector<ExportListing> exports;
  std::vector<Failure> access; ///< of the first of access_paths(), by mountd or else by version 4

  [[nodiscard]] StageAnswer& operator[](ProbeStage stage) { return stages[static_cast<std::size_t>(stage)]; }
  [[nodiscard]] const StageAnswer& operator[](ProbeStage stage) const {
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

/// The failure in a few words: "no answer", "the server closed the connection".
std::string describe(const Failure& failure);
/// A stage that failed, with the words for what happened, why it usually does, and what usually helps; `port` is the
/// one that was asked.
StageResult failed_stage(ProbeStage stage, const StageAnswer& answer, std::uint16_t port);

} // namespace sharefs::sys
