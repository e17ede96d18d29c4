#pragma once
// A machine made of path facts: answers inspect() from a table, as whichever user asks.
#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/system.hpp"

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <set>

namespace sharefs::test {

class FakeHomes : public sys::System {
 public:
  FakeHomes() : System(sys::Files("/nonexistent")) {
    m_identity.user = "root";
    m_identity.home = "/root";
  }

  // ---- what the machine holds ----
  sys::PathFact& add(const std::string& path, sys::PathKind kind) {
    if (path != "/" && !m_facts.contains(parent_path(path)))
      add(parent_path(path), sys::PathKind::directory);
    if (path != "/") {
      auto& entries = m_facts[parent_path(path)].entries;
      entries.insert(std::ranges::lower_bound(entries, base_name(path)), base_name(path));
    }
    auto& fact = m_facts[path];
    fact.path = path;
    fact.kind = kind;
    fact.device = 1;
    fact.inode = ++m_inodes;
    fact.mode = 0755;
    return fact;
  }
  void directory(const std::string& path) { add(path, sys::PathKind::directory); }
  void link(const std::string& path, const std::string& target) {
    add(path, sys::PathKind::symlink).link_target = target;
  }
  void environment(const std::string& path) { directory(path + "/conda-meta"); }
  void user(const std::string& name, uid_t uid) {
    m_users[name] = {name, uid, uid, {uid}, "/home/" + name};
    directory("/home/" + name);
  }
  void mount(const std::string& target, const std::string& type) {
    sys::MountEntry entry;
    entry.id = static_cast<int>(m_mounts.size()) + 1;
    std::size_t depth = 0;
    for (const auto& outer : m_mounts) // the deepest one above
      if (is_under(target, outer.target) && outer.target.size() > depth) {
        entry.parent = outer.id;
        depth = outer.target.size();
      }
    entry.target = target;
    entry.fs_type = type;
    m_mounts.push_back(entry);
  }
  sys::PathFact& fact(const std::string& path) { return m_facts.at(path); }
  std::map<std::string, sys::User>& users() { return m_users; }
  sys::Identity& self() { return m_identity; }
  std::set<std::string> hang;                        ///< a question about one of these has no answer
  std::map<std::string, std::set<std::string>> deny; ///< user ("" is root) -> paths

  // ---- System ----
  Result<std::vector<sys::PathFact>> inspect(const sys::InspectRequest& request) override {
    const std::lock_guard lock(m_mutex);
    const auto who = request.as ? request.as->name : "";
    std::vector<sys::PathFact> facts;
    for (const auto& query : request.queries) {
      m_asked.push_back(who + " " + query.path);
      if (hang.contains(query.path))
        return fail(ErrorCode::timeout, query.path + ": no answer within 3 s");
      facts.push_back(answer(query, who));
    }
    return facts;
  }
  [[nodiscard]] const std::vector<std::string>& asked() const { return m_asked; }

  Result<sys::User> user(std::string_view name) override {
    const auto found = m_users.find(std::string(name));
    if (found == m_users.end())
      return fail(ErrorCode::not_found, "no such user", "did you mean `alice`?");
    return found->second;
  }
  Result<sys::MountTable> mounts() override { return sys::MountTable(m_mounts); }
  sys::Identity identity() override { return m_identity; }
  std::chrono::system_clock::time_point now() override {
    return std::chrono::system_clock::from_time_t(1767225600); // 2026-01-01T00:00:00Z
  }
  Result<sys::Completed> run(const sys::Command&) override { return fail(ErrorCode::unsupported, "run"); }
  Error exec(const Argv&, const std::vector<std::string>&) override { return {ErrorCode::unsupported, "exec", "", ""}; }
  Result<void> mount(const sys::MountCall&) override { return fail(ErrorCode::unsupported, "mount"); }
  Result<void> unmount(const sys::UnmountCall&) override { return fail(ErrorCode::unsupported, "unmount"); }
  sys::NfsProbe probe_nfs(const sys::NfsProbeRequest&) override { return {}; }
  std::vector<sys::Entry> entries(const sys::EntryRequest& request) override {
    return std::vector<sys::Entry>(request.queries.size());
  }
  std::vector<sys::PathProbe> probe_paths(const std::vector<sys::PathProbeRequest>&) override { return {}; }

 private:
  /// As the kernel walks: links on the way are followed, the last one on request. Empty: too many links.
  [[nodiscard]] std::string resolve(const std::string& path, bool follow, int hops = 0) const {
    if (hops > 8)
      return {};
    std::string here = "/";
    const auto parts = split(path, '/');
    for (std::size_t index = 1; index < parts.size(); ++index) {
      if (parts[index] == "..") {
        here = parent_path(here);
        continue;
      }
      here = join_path(here, parts[index]);
      const auto found = m_facts.find(here);
      if (found == m_facts.end() || found->second.kind != sys::PathKind::symlink ||
          (!follow && index + 1 == parts.size()))
        continue;
      here = resolve(normalize_path(found->second.link_target, parent_path(here)), true, hops + 1);
      if (here.empty())
        return {};
    }
    return here;
  }
  sys::PathFact answer(const sys::PathQuery& query, const std::string& who) {
    const auto path = resolve(query.path, query.follow);
    sys::PathFact fact;
    if (const auto found = m_facts.find(path); found != m_facts.end()) {
      fact = found->second;
      if (!query.list)
        fact.entries.clear();
    } else {
      fact.kind = path.empty() ? sys::PathKind::unknown : sys::PathKind::missing;
      fact.error_number = path.empty() ? ELOOP : ENOENT;
    }
    if (const auto denied = deny.find(who); denied != deny.end())
      for (const auto& closed : denied->second)
        if (is_under(path, closed)) {
          fact = {};
          fact.error_number = EACCES;
        }
    fact.path = query.path;
    return fact;
  }

  std::map<std::string, sys::PathFact> m_facts;
  std::map<std::string, sys::User> m_users;
  std::vector<sys::MountEntry> m_mounts;
  std::vector<std::string> m_asked;
  sys::Identity m_identity;
  std::uint64_t m_inodes = 0;
  std::mutex m_mutex;
};

} // namespace sharefs::test
