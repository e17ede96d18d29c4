#pragma once
// Who changes many machines is known to the servers while it goes on (fleet/lease.hpp).
#include "cli/on_nodes.hpp"

#include <memory>
#include <utility>

namespace sharefs::cli {

/// The note on all servers, taken back when this goes. A server that does not answer cannot be asked, which is said.
class LeaseOnServers {
 public:
  using Taken = Result<std::unique_ptr<LeaseOnServers>>;
  /// `command`: the longest that the change takes on one node. Error `busy` with its holder.
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
