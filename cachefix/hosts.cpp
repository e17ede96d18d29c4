#include "cachefix/hosts.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace sharefs::cachefix {
namespace {

void add_once(std::vector<std::string>& hosts, std::string_view name) {
  if (!name.empty() && std::find(hosts.begin(), hosts.end(), name) == hosts.end())
    hosts.emplace_back(name);
}

/// A filter's hosts: `a@b:0,2` -> a, b. With `whole_only` those without slots.
std::vector<std::string> filtered(std::string_view filter, bool whole_only) {
  std::vector<std::string> hosts;
  for (const std::string& part : split(filter, '@')) {
    const auto colon = part.find(':');
    if (!whole_only || colon == std::string::npos)
      add_once(hosts, trim(std::string_view(part).substr(0, colon)));
  }
  return hosts;
}

bool is_among(const std::vector<std::string>& hosts, const std::string& host) {
  return std::find(hosts.begin(), hosts.end(), host) != hosts.end();
}

} // namespace

std::vector<std::string> parse_hostfile(std::string_view text) {
  std::vector<std::string> hosts;
  for (const std::string& line : split_lines(text)) {
    const auto words = split_words(std::string_view(line).substr(0, line.find('#')));
    if (!words.empty())
      add_once(hosts, std::string_view(words.front()).substr(0, words.front().find(':')));
  }
  return hosts;
}

std::vector<std::string> parse_host_list(std::string_view text) {
  std::vector<std::string> hosts;
  for (const std::string& part : split(text, ','))
    add_once(hosts, trim(std::string_view(part).substr(0, part.find(':'))));
  return hosts;
}

std::vector<std::string> filter_hosts(std::vector<std::string> hosts, std::string_view include,
                                      std::string_view exclude) {
  if (!include.empty()) {
    const auto wanted = filtered(include, false);
    std::erase_if(hosts, [&](const std::string& host) { return !is_among(wanted, host); });
  }
  const auto unwanted = filtered(exclude, true);
  std::erase_if(hosts, [&](const std::string& host) { return is_among(unwanted, host); });
  return hosts;
}

std::vector<std::string> hosts_of(Draft& draft, const Walk& walk) {
  std::vector<std::string> hosts;
  for (const Program& program : walk.programs)
    for (const std::size_t number : program.chain) {
      std::vector<std::string> found;
      std::string include, exclude;
      for (const GivenOption& option : walk.chain[number].options.given) {
        if (option.means == Means::hostfile) {
          const auto path = draft.absolute(program, option.value);
          const auto* text = path ? draft.text(*path) : nullptr;
          if (text != nullptr && *text)
            found = parse_hostfile(**text);
        } else if (option.means == Means::remote) {
          found = parse_host_list(option.value);
        } else if (option.name == "--include") {
          include = option.value;
        } else if (option.name == "--exclude") {
          exclude = option.value;
        }
      }
      for (const std::string& host : filter_hosts(std::move(found), include, exclude))
        add_once(hosts, host);
    }
  return hosts;
}

} // namespace sharefs::cachefix
