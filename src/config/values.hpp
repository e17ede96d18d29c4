#pragma once
// Rules for values in addition to their types: pure functions of the text, named in the rows of the key table.
#include "config/keys.hpp"

#include <optional>
#include <string_view>

namespace sharefs::config {

using RuleFunction = std::optional<Complaint>(std::string_view text);
RuleFunction account_rule, below_root_rule, mount_point_rule, share_rule, client_rule, conda_rule, environment_rule,
    flag_rule, host_rule, mode_rule, nodes_rule, group_rule, partition_rule, slots_rule, option_rule, program_rule,
    remote_rule, size_rule, count_rule, interval_rule, textfile_rule;

/// Applies the rules of the key's type and of the key itself. Returns nullopt if the value is right. The hint offers
/// another value only if that value is right.
std::optional<Complaint> check_value(const Key& key, std::string_view value);
/// Applies the rule for a name that the user chose (`servers.*`, `mounts.*`).
std::optional<Complaint> check_name(std::string_view name);

} // namespace sharefs::config
