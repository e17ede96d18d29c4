#include "fleet/facts.hpp"

#include "base/json_fields.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <map>

namespace sharefs::fleet {

namespace {

using Names = std::vector<std::string>;

/// Groups the machines by a value, the largest group first.
std::vector<std::pair<std::string, Names>> group_by_value(const std::vector<NodeAnswer>& answers,
                                                          const std::function<std::string(const NodeFacts&)>& value) {
  std::vector<std::pair<std::string, Names>> groups;
  for (const auto& one : answers) {
    const auto its = value(one.facts);
    auto found = std::ranges::find(groups, its, &std::pair<std::string, Names>::first);
    if (found == groups.end())
      found = groups.insert(groups.end(), {its, {}});
    found->second.push_back(one.node);
  }
  std::ranges::stable_sort(groups, std::greater(), [](const auto& group) { return group.second.size(); });
  return groups;
}

Diagnosis finding(Severity severity, const char* code, const Names& nodes, std::string message, std::string hint) {
  return {severity, code, fold(nodes), std::move(message), std::move(hint), ""};
}

void compare_files(const std::vector<NodeAnswer>& answers, Diagnoses& found) {
  const auto versions = group_by_value(answers, [](const NodeFacts& facts) { return facts.version; });
  for (std::size_t i = 1; i < versions.size(); ++i)
    found.push_back(finding(Severity::warning, "SF801", versions[i].second,
                            fmt::format("sharefs is version {} there, and {} on {}", versions[i].first,
                                        versions[0].first, fold(versions[0].second)),
                            fmt::format("`sharefs nodes push {}`", fold(versions[i].second))));
  const auto configs = group_by_value(answers, [](const NodeFacts& facts) { return facts.config; });
  for (std::size_t i = 1; i < configs.size(); ++i)
    found.push_back(finding(Severity::warning, "SF802", configs[i].second,
                            configs[i].first.empty()
                                ? "there is no sharefs.yaml"
                                : fmt::format("its sharefs.yaml differs from that on {}", fold(configs[0].second)),
                            fmt::format("`sharefs nodes push {}` brings this machine's", fold(configs[i].second))));
}

/// Containers of one machine have one boot id, and a host name each.
void compare_names(const std::vector<NodeAnswer>& answers, Diagnoses& found) {
  for (const auto& [name, nodes] : group_by_value(answers, [](const NodeFacts& facts) { return facts.hostname; })) {
    if (nodes.size() < 2 || name.empty())
      continue;
    auto same_name = answers;
    std::erase_if(same_name, [&](const NodeAnswer& one) { return one.facts.hostname != name; });
    const auto boots = group_by_value(same_name, [](const NodeFacts& facts) { return facts.boot_id; });
    for (const auto& [boot_id, names] : boots)
      if (names.size() > 1 && !boot_id.empty())
        found.push_back(finding(Severity::error, "SF808", names,
                                fmt::format("they are one machine, `{}`: a change may take its exports away before "
                                            "its clients have unmounted them",
                                            to_utf8(name)),
                                "keep one of the names under `nodes:` and `servers:` of sharefs.yaml; `{name: NODE, "
                                "address: ADDRESS}` is the server of this address"));
    if (boots.size() > 1 || boots.front().first.empty())
      found.push_back(finding(Severity::error, "SF808", nodes,
                              fmt::format("they all have the host name `{}`: NFS servers, and notes on the share about "
                                          "who works there, cannot tell them apart",
                                          to_utf8(name)),
                              "give each a name of its own (`hostnamectl set-hostname NAME`), then boot it"));
  }
}

using Accounts = std::vector<Account>;

/// Compares the numbers of users or groups among the machines whose sharefs.yaml names them.
void compare_accounts(const std::vector<NodeAnswer>& answers, Accounts NodeFacts::* list, Diagnoses& found) {
  const bool are_users = list == &NodeFacts::users;
  const auto* const what = are_users ? "user" : "group";
  std::map<std::string, std::vector<NodeAnswer>> by_name;
  for (const auto& one : answers)
    for (const auto& account : one.facts.*list)
      by_name[account.name].push_back(one);
  for (const auto& [name, known] : by_name) {
    const auto groups = group_by_value(known, [&](const NodeFacts& facts) -> std::string {
      const auto account = *std::ranges::find(facts.*list, name, &Account::name);
      if (!account.gid || (are_users && !account.uid))
        return "";
      return are_users ? fmt::format("uid {}, gid {}", *account.uid, *account.gid)
                       : fmt::format("gid {}", *account.gid);
    });
    // The reference is a group that knows the name; a machine that does not know it says nothing about the numbers.
    const auto first = std::ranges::find_if(groups, [](const auto& group) { return !group.first.empty(); });
    for (const auto& group : groups) {
      if (first == groups.end() || group.first.empty())
        found.push_back(finding(Severity::warning, "SF804", group.second, fmt::format("there is no {} {}", what, name),
                                "make it with the same numbers on all machines, or use LDAP"));
      else if (&group != &*first)
        found.push_back(
            finding(Severity::error, "SF803", group.second,
                    fmt::format("{} {} is {}, and {} on {}: files on the share belong to somebody else there", what,
                                name, group.first, first->first, fold(first->second)),
                    fmt::format("give {} the same numbers on all machines: `usermod -u`, `groupmod -g`", name)));
    }
  }
}

void compare_clocks(const std::vector<NodeAnswer>& answers, Diagnoses& found) {
  constexpr std::int64_t k_most = 2000; // milliseconds; a smaller difference disturbs nobody who compares times
  std::map<std::int64_t, Names> ahead;  // by the seconds that they are ahead
  for (const auto& one : answers)
    if (const auto by = one.facts.clock_ms - one.asked_ms; one.asked_ms != 0 && std::abs(by) >= k_most)
      ahead[by / 1000].push_back(one.node);
  for (const auto& [seconds, nodes] : ahead)
    found.push_back(finding(
        Severity::warning, "SF805", nodes,
        fmt::format("the clock is {} s {} this machine's", std::abs(seconds), seconds < 0 ? "behind" : "ahead of"),
        "let all follow one time server (chrony, systemd-timesyncd)"));
}

} // namespace

std::optional<NodeFacts> read_facts(const nlohmann::ordered_json& json) {
  NodeFacts facts;
  return value_from_json(json, facts) ? std::optional(facts) : std::nullopt;
}

Diagnoses compare(const std::vector<NodeAnswer>& answers) {
  Diagnoses found;
  compare_files(answers, found);
  compare_names(answers, found);
  compare_accounts(answers, &NodeFacts::users, found);
  compare_accounts(answers, &NodeFacts::groups, found);
  compare_clocks(answers, found);
  return found;
}

} // namespace sharefs::fleet
