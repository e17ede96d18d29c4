#pragma once
// The cluster lease on the servers: it tells other administrators who is changing the cluster (fleet/lease.hpp).
#include "cli/on_nodes.hpp"

#include <memory>
#include <utility>

namespace sharefs::cli {

/// Holds the lease on all servers; the destructor gives it back. A server that does not answer is only warned about.
class LeaseOnServers {
 public:
  using Taken = Result<std::unique_ptr<LeaseOnServers>>;
  /// Takes the lease. `command` is the longest time of the change on one node. Error `busy` with the name of the
  /// holder.
  static Taken take(Context& context, const std::string& run, std::chrono::seconds command);
  LeaseOnServers(const LeaseOnServers&) = delete;
  LeaseOnServers& operator=(const LeaseOnServers&) = delete;
  ~LeaseOnServers();

 private:
  LeaseOnServers(Context& context, std::string run, std::vector<fleet::Node> servers)
      : m_context(context), m_run(std::move(run)), m_servers(std::move(servers)) {}
  Context& m_context;
  std::string m_run;
  std::vector<fleet::Node> m_servers;
};

} // namespace sharefs::cli
