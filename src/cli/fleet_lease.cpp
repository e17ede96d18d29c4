#include "cli/on_nodes.hpp"

#include "base/try.hpp"
#include "sys/process/interrupt.hpp"

#include <algorithm>
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
  TRY_ASSIGN(const auto outcomes, ask_nodes(context, lease->m_servers, words));
  for (const auto& outcome : outcomes)
    if (outcome.state == fleet::State::failed)
      return fail(ErrorCode::busy, fmt::format("{}: {}", outcome.node, outcome.why), outcome.hint);
    else if (!is_good(outcome.state))
      context.console.warning(
          fmt::format("{} could not be asked who else changes the cluster: {}", outcome.node, outcome.why));
  // A server that is off would hold up the end, too.
  std::erase_if(lease->m_servers, [&](const fleet::Node& server) {
    return !is_good(std::ranges::find(outcomes, server.name, &fleet::Outcome::node)->state);
  });
  return lease;
}

LeaseOnServers::~LeaseOnServers() {
  if (m_servers.empty())
    return;
  constexpr std::chrono::seconds k_longest{10};
  const sys::DelayInterrupts delay;
  const Argv words{"nodes", "lease", m_run, "--release"};
  const auto outcomes = ask_nodes(m_context, m_servers, words, k_longest);
  const bool is_given_back = outcomes && std::ranges::all_of(*outcomes, &fleet::is_good, &fleet::Outcome::state);
  if (!is_given_back)
    m_context.console.warning("the servers may refuse other administrators until the lease of this run expires",
                              fmt::format("`sharefs {}` on a server gives it back", shell_join(words)));
}

} // namespace sharefs::cli
