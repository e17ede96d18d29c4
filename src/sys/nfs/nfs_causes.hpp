#pragma once
// Why a stage of the NFS probe usually fails, and what usually helps.
#include "base/result.hpp"
#include "sys/nfs/nfs_probe.hpp"

namespace sharefs::sys {

/// `failed`, with the words for a connection that was not made (errno), for `stage`.
StageResult connection_failure(ProbeStage stage, int error_number, std::uint16_t port);
/// `failed`, with the words for a call that had no (good) answer.
StageResult call_failure(ProbeStage stage, const Error& error);

} // namespace sharefs::sys
