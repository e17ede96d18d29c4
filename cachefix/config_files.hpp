#pragma once
// Files and overrides that say where caches are: LLaMA-Factory YAML with key=value, HfArgumentParser JSON and YAML,
// Hydra overrides, `<script>.args`, `@file`.
#include "cachefix/draft.hpp"

namespace sharefs::cachefix {

/// `key=value` and `a.b.key=value` among the arguments, as occurrences of the flag `--key`.
std::vector<Occurrence> find_overrides(const Program& program, const Framework* framework, const Draft& draft);
/// The configuration file of the program, if its cache_dir lies on shared storage: an override is appended where the
/// framework has one, else a changed copy beside the file is used. The original is never edited.
void sanitize_config_file(Draft& draft, const Walk& walk, const Program& program, const Framework* framework);

/// The value of a top-level scalar in YAML text; nullopt if it is not there, or not plainly so.
std::optional<std::string> yaml_scalar(const std::string& text, std::string_view key);
/// The text without the line of that scalar, or with another value; all other bytes stay.
std::string with_yaml_scalar(const std::string& text, std::string_view key, const std::optional<std::string>& value);

} // namespace sharefs::cachefix
