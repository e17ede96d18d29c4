#include "mounts/probe.hpp"

#include "base/path.hpp"
#include "mounts/diagnose.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <thread>

namespace sharefs::mounts {

namespace {

constexpr std::chrono::seconds k_pause{2}; ///< between two questions to a server that is not ready

/// Returns warnings for stages that fail although the server can be used: no exports, none for this host, no NFS 3.
Diagnoses find_lesser_failures(const sys::NfsProbe& probe) {
  Diagnoses found;
  for (const auto& stage : probe.stages)
    if (stage.outcome == sys::StageOutcome::failed)
      found.push_back({Severity::warning, "SF201", probe.host,
                       fmt::format("stage {}: {}{}", to_string(stage.stage), stage.detail,
                                   stage.cause.empty() ? "" : " (" + stage.cause + ")"),
                       stage.hint, ""});
  return found;
}

/// Returns ServerReply::diagnoses.
Diagnoses diagnose_server(const sys::NfsProbe& probe, const ServerQuestion& question) {
  if (question.request.paths.empty() && probe.usable())
    return find_lesser_failures(probe);
  MountPoint point;
  point.name = question.name;
  point.server = question.request.host;
  if (!question.request.paths.empty())
    point.path = question.request.paths.front();
  return preflight(point, &probe);
}

/// True if the path may be valid for NFS 4 only. With fsid=0 the paths of NFS 4 begin at that export, and mountd, which
/// answers for NFS 3, refuses them. If no listed export contains the path, this host cannot know more.
bool may_be_below_fsid0(const sys::NfsProbe& probe, const std::string& path) {
  return probe.usable(4) && !probe.exports.empty() &&
         std::ranges::none_of(probe.exports, [&](const auto& one) { return is_under(path, one.directory); });
}

bool is_ready(const sys::NfsProbe& probe, const Diagnoses& diagnoses, const ServerQuestion& question) {
  const auto& paths = question.request.paths;
  const bool is_refused = std::ranges::any_of(probe.stages, [](const sys::StageResult& one) {
    return one.stage == sys::ProbeStage::access && one.outcome == sys::StageOutcome::failed;
  });
  return !has_errors(diagnoses) && probe.usable() &&
         (paths.empty() || !is_refused || (question.until_ready && may_be_below_fsid0(probe, paths.front())));
}

} // namespace

ServerReply ask_server(sys::System& system, const ServerQuestion& question, const plan::Say& say) {
  std::string reported;
  for (;; std::this_thread::sleep_for(k_pause)) {
    ServerReply reply;
    {
      const auto progress = say.progress("asking " + question.request.host);
      reply.probe = system.probe_nfs(question.request);
    }
    reply.diagnoses = diagnose_server(reply.probe, question);
    reply.ready = is_ready(reply.probe, reply.diagnoses, question);
    if (reply.ready || !question.until_ready)
      return reply;
    if (const auto reason = reply.diagnoses.empty() ? "it is not ready" : reply.diagnoses.front().message;
        reason != reported) {
      say.message(fmt::format("waiting for {}: {}", question.name, reason));
      reported = reason;
    }
  }
}

} // namespace sharefs::mounts
