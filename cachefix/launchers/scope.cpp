#include "cachefix/launchers/scope.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

namespace sharefs::cachefix {
namespace {

/// srun --export=ALL,NAME=value,...: a list without ALL cuts the environment down to what it names.
void add_list(Scope& scope, const Launcher& launcher, const GivenOption& option, std::size_t begin) {
  bool all = false;
  for (const std::string& part : split(option.value, ',')) {
    const auto equals = part.find('=');
    if (part == "ALL")
      all = true;
    else if (equals != std::string::npos)
      scope.assigned.push_back(
          {part.substr(0, equals), part.substr(equals + 1), option.value_index, begin + equals + 1, &launcher});
    begin += part.size() + 1;
  }
  scope.cleared = !all;
}

} // namespace

bool Scope::take(const Launcher& launcher, const GivenOption& option, std::size_t begin) {
  switch (*option.means) {
  case Means::directory:
    directory = normalize_path(option.value, directory);
    return true;
  case Means::assign:
    if (const auto equals = option.value.find('='); equals != std::string::npos)
      assigned.push_back({option.value.substr(0, equals), option.value.substr(equals + 1), option.value_index,
                          begin + equals + 1, &launcher});
    return true;
  case Means::assign_pair:
    assigned.push_back({option.value, option.second, option.value_index, 0, &launcher});
    return true;
  case Means::assign_list:
    add_list(*this, launcher, option, begin);
    return true;
  case Means::unset:
    unset.push_back(option.value);
    return true;
  case Means::clear:
    cleared = true;
    return true;
  default:
    return false;
  }
}

} // namespace sharefs::cachefix
