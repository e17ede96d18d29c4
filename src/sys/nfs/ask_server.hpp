#pragma once
// The child's side of a probe: it asks one server and reports numbers and bounded names, for which the parent has the
// words. A server that takes the child over gains no more than to lie about itself.
#include "sys/nfs/rpc.hpp"

#include <array>
#include <chrono>
#include <optional>

namespace sharefs::sys {

inline constexpr std::size_t k_stage_count = 8;          ///< of ProbeStage
inline constexpr std::size_t k_max_answers = 32U << 20U; ///< bytes of all that a child reports

struct StageAnswer {
  bool asked = false;
  Failure failure; ///< `none`: as it should be
  std::chrono::microseconds round_trip{0};
  friend bool operator==(const StageAnswer&, const StageAnswer&) = default;
};

/// What mountd said to MNT of a path.
struct AccessAnswer {
  Failure failure;
  MountReply reply;
  friend bool operator==(const AccessAnswer&, const AccessAnswer&) = default;
};

/// What one of several addresses of a server answered: exports may name IPv4 only, or IPv6 only.
struct AddressAnswer {
  std::uint32_t address = 0;        ///< which of ServerAnswers::addresses
  Failure failure;                  ///< `none`: NFS answers there
  std::vector<AccessAnswer> access; ///< as ServerAnswers::access; by NFS 4 where no mountd could be asked
  friend bool operator==(const AddressAnswer&, const AddressAnswer&) = default;
};

struct ServerAnswers {
  std::array<StageAnswer, k_stage_count> stages;
  std::vector<std::string> addresses;          ///< of the host
  std::uint32_t used = 0;                      ///< of which of them all the rest is (0 if none answered)
  std::vector<AddressAnswer> tried;            ///< where there are several addresses
  std::uint32_t services = 0;                  ///< that the portmapper knows
  std::uint16_t nfs_port = 0, mountd_port = 0; ///< as the portmapper says; 0: not registered
  std::vector<ExportListing> exports;
  std::vector<AccessAnswer> access; ///< of the paths of access_paths(), as many as were asked for

  [[nodiscard]] StageAnswer& operator[](ProbeStage stage) { return stages[static_cast<std::size_t>(stage)]; }
  [[nodiscard]] const StageAnswer& operator[](ProbeStage stage) const {
    return stages[static_cast<std::size_t>(stage)];
  }
  friend bool operator==(const ServerAnswers&, const ServerAnswers&) = default;
};

/// The paths whose access is asked for: those of the request, or else every export.
std::vector<std::string> access_paths(const NfsProbeRequest& request, const std::vector<ExportListing>& exports);

/// In a child: give up all privileges, ask, and write what is known to `fd` after each stage. Never longer than
/// request.timeout.
void ask_server(const NfsProbeRequest& request, const NfsPorts& ports, int fd);

/// As ask_server() writes it.
std::string encode(const ServerAnswers& answers);
/// The last whole report among the bytes of a child, if each of its fields is one that ask_server() could have written.
std::optional<ServerAnswers> decode_last(std::string_view bytes);

/// The stages in the order of asking: NFS itself first, because a firewall in front of the portmapper must not use up
/// the time for it.
inline constexpr std::array<ProbeStage, k_stage_count> k_asking_order{
    ProbeStage::resolve,    ProbeStage::connect, ProbeStage::nfs3,    ProbeStage::nfs4,
    ProbeStage::portmapper, ProbeStage::mountd,  ProbeStage::exports, ProbeStage::access};

} // namespace sharefs::sys
