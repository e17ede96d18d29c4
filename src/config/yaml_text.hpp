#pragma once
// Scalars as YAML readers see them. sharefs takes every scalar by its source text; what other readers would take for a
// number or a boolean must be quoted, so that an editor, Ansible or Python never reads another value than sharefs does.
#include <optional>
#include <string>
#include <string_view>

namespace sharefs::config {

/// The type that YAML 1.1 or 1.2 gives to an unquoted scalar that is no text: "null", "a boolean", "a number"; nullopt:
/// text.
std::optional<std::string_view> plain_meaning(std::string_view text);

/// The scalar as it is written in a file, quoted where needed, in block and in flow context; always one line.
std::string yaml_scalar(std::string_view text);
/// Always in double quotes.
std::string yaml_quoted(std::string_view text);

} // namespace sharefs::config
