#pragma once
// Facts that each machine reports about itself, so that another machine can compare them: no machine is inspected from
// outside. `sharefs doctor` on each machine checks whether it is healthy.
#include "base/diagnosis.hpp"
#include "base/fields.hpp"
#include "fleet/node.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::fleet {

/// A user or a group of sharefs.yaml.
struct Account {
  std::string name;
  std::optional<std::uint64_t> uid = {}; ///< nullopt: it is a group, or the machine does not know the user
  std::optional<std::uint64_t> gid = {}; ///< nullopt: the machine does not know the user or group
  friend bool operator==(const Account&, const Account&) = default;
};
template <FieldsOf<Account> A> auto fields(A& a) {
  return named("name", a.name, "uid", a.uid, "gid", a.gid);
}

struct NodeFacts {
  std::string hostname, version;
  std::string config;        ///< sha256 of its sharefs.yaml
  std::int64_t clock_ms = 0; ///< since 1970, by its clock
  std::vector<Account> users, groups;
  std::string boot_id = {}; ///< empty: of an older sharefs
  friend bool operator==(const NodeFacts&, const NodeFacts&) = default;
};
template <FieldsOf<NodeFacts> F> auto fields(F& f) {
  return named("hostname", f.hostname, "version", f.version, "config", f.config, "clock_ms", f.clock_ms, "users",
               f.users, "groups", f.groups, "boot_id", f.boot_id);
}

/// Reads the facts of another machine's sharefs; nullopt if the JSON is something else.
std::optional<NodeFacts> read_facts(const nlohmann::ordered_json& json);

struct NodeAnswer {
  std::string node;
  NodeFacts facts;
  std::int64_t asked_ms = 0; ///< when its answer was complete, by our clock
};

/// Reports where machines differ (SF801 to SF805), or have one name (SF808). The value of the majority is taken as
/// right; in a tie, that of the first.
Diagnoses compare(const std::vector<NodeAnswer>& answers);

} // namespace sharefs::fleet
