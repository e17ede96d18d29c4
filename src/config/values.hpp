#pragma once
// What a value must look like, beyond its type: one rule per key, pure functions of the text.
#include "config/keys.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace sharefs::config {

/// Why a value is refused: `what` continues the sentence "`at` ...".
struct Complaint {
  std::string what, hint;
};

/// The rules of the key's type and of the key itself; nullopt: the value is right.
std::optional<Complaint> complaint_about(const Key& key, std::string_view value);
/// The rule for a name that the user chose (`servers.*`, `mounts.*`).
std::optional<Complaint> complaint_about_name(std::string_view name);

/// `SERVER:/PATH`; an IPv6 address stands in brackets, which `server` does not keep. nullopt: not of this form.
struct Remote {
  std::string server, path;
};
std::optional<Remote> parse_remote(std::string_view text);
std::string format_remote(std::string_view server, std::string_view path);

} // namespace sharefs::config
