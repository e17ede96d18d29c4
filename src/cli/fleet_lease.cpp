#include "cli/fleet_lease.hpp"

#include "base/try.hpp"
#include "sys/process/interrupt.hpp"

#include <fmt/format.h>

namespace sharefs::cli {

LeaseOnServers::Taken LeaseOnServers::take(Context& context, const std::string& run, std::chrono::seconds command) {
  TRY_ASSIGN(auto servers, known_servers(context));
  std::unique_ptr<LeaseOnServers> lease(new LeaseOnServers(context, run, std::move(servers)));
  if (lease->m_servers.empty())
    return lease;
  const auto identity = context.system.identity();
  const auto span = std::chrono::minutes(10) + 4 * command;
  const Argv words{"nodes", "lease",
                   run,     identity.user + "@" + identity.hostname,
                   "--for", fmt::format("{}s", std::chrono::seconds(span).count())};
  TRY_ASSIGN(const auto outcomes, ask_nodes(context, lease->m_servers, words, true));
  for (const auto& outcome : outcomes)
    if (outcome.state == fleet::State::failed)
      return fail(ErrorCode::busy, fmt::format("{}: {}", outcome.node, outcome.why), outcome.hint);
    else if (!is_good(outcome.state))
      context.console.warning(
          fmt::format("{} could not be asked who else changes the cluster: {}", outcome.node, outcome.why));
  return lease;
}

LeaseOnServers::~LeaseOnServers() {
  const sys::DelayInterrupts delay;
  if (!m_servers.empty())
    // A lease that cannot be given back expires.
    (void)ask_nodes(m_context, m_servers, {"nodes", "lease", m_run, "--release"}, true);
}

} // namespace sharefs::cli
