#pragma once
// Rules for values in addition to their types: pure functions of the text, named in the rows of the key table.
#include "config/keys.hpp"

#include <optional>
#include <string_view>

namespace sharefs::config {

std::optional<Complaint> account_rule(std::string_view text);
std::optional<Complaint> below_root_rule(std::string_view text);
std::optional<Complaint> mount_point_rule(std::string_view text);
std::optional<Complaint> share_rule(std::string_view text);
std::optional<Complaint> client_rule(std::string_view text);
std::optional<Complaint> conda_rule(std::string_view text);
std::optional<Complaint> environment_rule(std::string_view text);
std::optional<Complaint> flag_rule(std::string_view text);
std::optional<Complaint> host_rule(std::string_view text);
std::optional<Complaint> mode_rule(std::string_view text);
std::optional<Complaint> nodes_rule(std::string_view text);
std::optional<Complaint> group_rule(std::string_view text);
std::optional<Complaint> partition_rule(std::string_view text);
std::optional<Complaint> slots_rule(std::string_view text);
std::optional<Complaint> option_rule(std::string_view text);
std::optional<Complaint> program_rule(std::string_view text);
std::optional<Complaint> remote_rule(std::string_view text);
std::optional<Complaint> size_rule(std::string_view text);
std::optional<Complaint> count_rule(std::string_view text);
std::optional<Complaint> interval_rule(std::string_view text);
std::optional<Complaint> textfile_rule(std::string_view text);

/// Applies the rules of the key's type and of the key itself. Returns nullopt if the value is right. The hint offers
/// another value only if that value is right.
std::optional<Complaint> check_value(const Key& key, std::string_view value);
/// Applies the rule for a name that the user chose (`servers.*`, `mounts.*`).
std::optional<Complaint> check_name(std::string_view name);

} // namespace sharefs::config
