#pragma once
// Scalars in the text of YAML and JSON files: found by key, taken out or replaced; all other bytes stay. Pure.
#include "cachefix/budget.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::cachefix {

bool is_yaml_name(std::string_view name);     ///< *.yaml, *.yml
bool is_document_name(std::string_view name); ///< that, or *.json

/// The value of a top-level scalar in the text of a YAML file, or of a member of a JSON object that is a string, or
/// true or false; `name` is the file's. nullopt if it is not there, or not plainly so.
std::optional<std::string> scalar_in(std::string_view name, const std::string& text, std::string_view key);
/// The text without that scalar, or with another value. Of YAML all other bytes stay; JSON is written anew with an
/// indent of two.
std::string with_scalar(std::string_view name, const std::string& text, std::string_view key,
                        const std::optional<std::string>& value);

struct NestedScalar {
  std::string key; ///< `a.b.c`
  std::string value;
};
/// All scalars of a YAML text that are reached through mappings, in the order of the text; none if it is no YAML.
std::vector<NestedScalar> nested_yaml_scalars(const std::string& text, Budget& budget);

/// The last `--cache_dir` among words that stand in a text: a file of arguments, or a variable's assignment.
/// transformers splits such a file at white space (hf_argparser.py, parse_args_into_dataclasses), argparse at line
/// ends.
std::optional<std::string> cache_dir_of_arguments(const std::string& text);

} // namespace sharefs::cachefix
