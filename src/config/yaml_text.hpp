#pragma once
// YAML scalars as other programs read them. sharefs reads every scalar as its source text. A text that another reader
// would take for a number or a boolean must be quoted, so that an editor, Ansible or Python never reads another value
// than sharefs.
#include <optional>
#include <string>
#include <string_view>

namespace sharefs::config {

/// Returns the type that YAML 1.1 or 1.2 gives to an unquoted scalar that is not text: "null", "a boolean" or "a
/// number"; nullopt if it is text.
std::optional<std::string_view> plain_meaning(std::string_view text);

/// Returns the scalar as a file has it, quoted where needed in block or flow context; always one line.
std::string yaml_scalar(std::string_view text);
/// Returns `text` in double quotes.
std::string yaml_quoted(std::string_view text);

} // namespace sharefs::config
