#pragma once
// A machine in memory for the tests of this room: a mount table, answers by path and host.
#include "sys/system.hpp"

#include <functional>
#include <map>
#include <set>

namespace sharefs::test {

class FakeSystem final : public sys::System {
 public:
  FakeSystem() : System(sys::Files("/nonexistent")) {}

  sys::MountTable table;
  std::map<std::string, sys::PathFact> facts; ///< others are missing
  std::set<std::string> hanging;              ///< inspect() times out on these paths
  std::map<std::string, sys::PathProbe> probes;
  std::function<sys::PathProbe(const sys::PathProbeRequest&)> probe_one; ///< instead of `probes`
  std::map<std::string, sys::NfsProbe> servers;
  sys::Identity self;
  std::vector<std::string> probed, inspected;

  void add_file(const std::string& path, std::string content) {
    sys::PathFact fact;
    fact.path = path;
    fact.kind = sys::PathKind::file;
    fact.content = std::move(content);
    facts[path] = fact;
  }
  void add_link(const std::string& path, std::string target) {
    sys::PathFact fact;
    fact.path = path;
    fact.kind = sys::PathKind::symlink;
    fact.link_target = std::move(target);
    facts[path] = fact;
  }
  void add_directory(const std::string& path, std::vector<std::string> entries = {}) {
    sys::PathFact fact;
    fact.path = path;
    fact.kind = sys::PathKind::directory;
    fact.mode = 0755;
    fact.entries = std::move(entries);
    facts[path] = fact;
  }

  Result<sys::Completed> run(const sys::Command&) override { return fail(ErrorCode::unsupported, "run"); }
  Error exec(const Argv&, const std::vector<std::string>&) override { return {ErrorCode::unsupported, "exec", "", ""}; }
  Result<sys::MountTable> mounts() override { return table; }
  Result<void> mount(const sys::MountCall&) override { return fail(ErrorCode::unsupported, "mount"); }
  Result<void> unmount(const sys::UnmountCall&) override { return fail(ErrorCode::unsupported, "unmount"); }
  sys::NfsProbe probe_nfs(const sys::NfsProbeRequest& request) override {
    const auto found = servers.find(request.host);
    return found == servers.end() ? sys::NfsProbe{} : found->second;
  }
  std::vector<sys::Entry> entries(const sys::EntryRequest& request) override {
    return std::vector<sys::Entry>(request.queries.size());
  }
  std::vector<sys::PathProbe> probe_paths(const std::vector<sys::PathProbeRequest>& requests) override {
    std::vector<sys::PathProbe> results;
    for (const auto& request : requests) {
      probed.push_back(request.path);
      results.push_back(probe_one ? probe_one(request) : probes[request.path]);
    }
    return results;
  }
  Result<std::vector<sys::PathFact>> inspect(const sys::InspectRequest& request) override {
    std::vector<sys::PathFact> results;
    for (const auto& query : request.queries) {
      inspected.push_back(query.path);
      if (hanging.contains(query.path))
        return fail(ErrorCode::timeout, query.path + ": no answer within 2 s");
      const auto found = facts.find(query.path);
      sys::PathFact fact;
      fact.kind = sys::PathKind::missing;
      if (found != facts.end())
        fact = found->second;
      fact.path = query.path;
      results.push_back(fact);
    }
    return results;
  }
  sys::Identity identity() override { return self; }
  Result<sys::User> user(std::string_view) override { return fail(ErrorCode::not_found, "user"); }
  std::chrono::system_clock::time_point now() override { return {}; }
};

} // namespace sharefs::test
