#pragma once
// What the child that asks a server reports: numbers and bounded names, for which the parent has the words. A server
// that takes the child over gains no more than to lie about itself.
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
  name_service,  ///< it failed: `error_number` is getaddrinfo(3)'s
  connection,    ///< was not made: `error_number`, ETIMEDOUT when the deadline passed
  timeout,       ///< connected, but no answer
  closed,        ///< the connection ended before the answer
  unsupported,   ///< the server does not offer the program or version
  refused,       ///< the server takes the call, but not from us
  unreadable,    ///< what it sent cannot be read
  unregistered,  ///< the portmapper does not know the program
  nothing,       ///< the list of exports is empty
  not_asked,     ///< we could not ask: `error_number`
  status,        ///< of a path: `error_number` is a mountstat3, which has the numbers of errno and of NFS 4
  only_kerberos, ///< of a path: neither AUTH_SYS nor AUTH_NONE
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

/// The stages in the order in which an address is asked: NFS itself first, because a firewall in front of the
/// portmapper must not use up the time for it.
inline constexpr std::array<ProbeStage, k_stage_count - 1> k_asking_order{
    ProbeStage::connect, ProbeStage::nfs3,    ProbeStage::nfs4,  ProbeStage::portmapper,
    ProbeStage::mountd,  ProbeStage::exports, ProbeStage::access};

struct StageAnswer {
  bool asked = false;
  Failure failure; ///< `none`: as it should be
  std::chrono::microseconds round_trip{0};
  friend bool operator==(const StageAnswer&, const StageAnswer&) = default;
};

/// What one address of a server answered: exports may name IPv4 only, or IPv6 only.
struct AddressAnswers {
  std::string address;
  std::array<StageAnswer, k_stage_count> stages;
  std::uint32_t services = 0;                  ///< that the portmapper knows
  std::uint16_t nfs_port = 0, mountd_port = 0; ///< as the portmapper says; 0: not registered
  std::vector<ExportListing> exports;
  /// Of the paths of access_paths(), as many as were asked for: by mountd, or else by version 4 where another address
  /// could be taken instead.
  std::vector<Failure> access;

  [[nodiscard]] StageAnswer& operator[](ProbeStage stage) { return stages[static_cast<std::size_t>(stage)]; }
  [[nodiscard]] const StageAnswer& operator[](ProbeStage stage) const {
    return stages[static_cast<std::size_t>(stage)];
  }
  [[nodiscard]] bool is_ok(ProbeStage stage) const {
    return (*this)[stage].asked && (*this)[stage].failure == Failure();
  }
  [[nodiscard]] bool offers_nfs() const { return is_ok(ProbeStage::nfs3) || is_ok(ProbeStage::nfs4); }
  friend bool operator==(const AddressAnswers&, const AddressAnswers&) = default;
};

struct ServerAnswers {
  StageAnswer resolve;
  std::vector<AddressAnswers> addresses; ///< of the host
  std::uint32_t asking = 0;              ///< which of them is being asked, or was the last
  friend bool operator==(const ServerAnswers&, const ServerAnswers&) = default;
};

/// The paths whose access is asked for: those of the request, or else every export.
std::vector<std::string> access_paths(const NfsProbeRequest& request, const std::vector<ExportListing>& exports);

/// How well this host could use an address: 0 not at all, 1 it accepts connections, 2 NFS answers, one more for each
/// path that may be mounted, and k_all_allowed for all of them.
std::size_t usefulness(const NfsProbeRequest& request, const AddressAnswers& answers);
inline constexpr std::size_t k_all_allowed = k_max_entries + 3;

/// In a child: give up all privileges, ask, and write what is known to `fd` after each stage. Never longer than
/// request.timeout.
void ask_server(const NfsProbeRequest& request, const NfsPorts& ports, int fd);

/// As ask_server() writes it.
std::string encode(const ServerAnswers& answers);
/// The last whole report among the bytes of a child, if each of its fields is one that ask_server() could have written.
std::optional<ServerAnswers> decode_last(std::string_view bytes);

} // namespace sharefs::sys
