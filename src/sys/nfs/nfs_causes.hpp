#pragma once
// Why a stage of the NFS probe usually fails, and what usually helps.
#include "sys/nfs/server_answers.hpp"

namespace sharefs::sys {

/// `failed`, with the words for what happened; `port` is the one that was asked.
StageResult failed_stage(ProbeStage stage, const StageAnswer& answer, std::uint16_t port);
/// The failure in a few words: "no answer", "the server closed the connection".
std::string describe(const Failure& failure);

} // namespace sharefs::sys
