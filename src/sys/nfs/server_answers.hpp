#pragma once
// The report of the child that asks one address of a server. It contains only numbers and names of limited length; the
// parent has the message texts. So a server that takes over the child can only give false answers about itself.
#include "sys/net/addresses.hpp"
#include "sys/nfs/nfs_probe.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::sys {

/// The reason why a stage got no answer, or a negative one.
enum class Fault : std::uint8_t {
  none,
  unasked,
  no_such_name,
  name_service,
  connection,    ///< not connected: `error_number`; ETIMEDOUT if the deadline has passed
  timeout,       ///< connected, but no answer
  closed,        ///< the connection ended before the answer
  unsupported,   ///< the server does not offer the program or version
  refused,       ///< the server refuses calls from us
  unreadable,    ///< the reply cannot be read
  unregistered,  ///< the portmapper does not know the program
  nothing,       ///< the list of exports is empty
  not_asked,     ///< we could not ask: `error_number`
  only_kerberos, ///< for a path: neither AUTH_SYS nor AUTH_NONE is allowed
  moved,         ///< for a path: NFS 4 refers to another server (NFS4ERR_MOVED), which mount.nfs asks then
  status,        ///< for a path: `error_number` is a mountstat3, which has the numbers of errno and of NFS 4
};
struct ServerAnswer {
  Fault fault = Fault::none; ///< `none`: success
  int error_number = 0;
  std::chrono::microseconds round_trip{0}; ///< duration of the stage
  friend bool operator==(const ServerAnswer&, const ServerAnswer&) = default;
};
/// True if the server has answered, also if the answer is an error status.
inline bool is_answer(const ServerAnswer& answer) {
  return answer.fault == Fault::none || answer.fault >= Fault::only_kerberos;
}

inline constexpr std::size_t k_stage_count = 8;          ///< the number of ProbeStage values
inline constexpr std::size_t k_max_answers = 32U << 20U; ///< bytes of all reports of a child
inline constexpr std::size_t k_max_entries = 100'000;    ///< exports and their clients together
inline constexpr std::size_t k_max_name = 1024;          ///< MNTPATHLEN of RFC 1813
inline constexpr std::uint8_t k_newest_minor = 2;        ///< of NFS 4 (RFC 7862)

/// The answers for a path, as mountd gives them.
struct PathAnswers {
  ServerAnswer by_mountd = {Fault::timeout};
  ServerAnswer by_nfs4 = {Fault::timeout};
};

struct AddressAnswers {
  std::vector<ServerAnswer> stages = std::vector<ServerAnswer>(k_stage_count, {Fault::unasked});
  std::uint16_t mountd_port = 0; ///< from the portmapper; 0: not registered
  std::vector<ExportListing> exports;
  std::vector<PathAnswers> access;        ///< for the first paths of access_paths()
  std::uint8_t v4_minor = k_newest_minor; ///< the newest minor version of 4 that the server offers

  [[nodiscard]] ServerAnswer& operator[](ProbeStage stage) { return stages[static_cast<std::size_t>(stage)]; }
  [[nodiscard]] const ServerAnswer& operator[](ProbeStage stage) const {
    return stages[static_cast<std::size_t>(stage)];
  }
};

/// Returns the paths whose access is asked: none, those of the request, or else every export.
std::vector<std::string> access_paths(const NfsProbeRequest& request, const std::vector<ExportListing>& exports);

/// Drops all privileges, asks the address, and writes a report to `fd` after each stage. It must run in a child. Never
/// takes longer than request.timeout.
void ask_address(const NfsProbeRequest& request, const Address& address, int fd);

/// Returns a report as ask_address() writes it.
std::string encode(const AddressAnswers& answers);
/// Decodes the last complete report of a child; nullopt if a field has a value that ask_address() cannot have written.
std::optional<AddressAnswers> decode_last(std::string_view bytes);

/// Returns the result of a failed stage, with a description, the usual cause and the usual cure. `port` is the port
/// that was asked.
StageResult failed_stage(ProbeStage stage, const ServerAnswer& answer, std::uint16_t port);

} // namespace sharefs::sys
