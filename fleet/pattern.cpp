// Patterns of names: expands "gpu[01-64]" of nodeset(1) to names, and folds names to ranges.
#include "base/number.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "fleet/node.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fnmatch.h>
#include <map>
#include <unordered_set>

namespace sharefs::fleet {

namespace {

using Names = std::vector<std::string>;

bool is_name_character(char one) {
  return (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z') || (one >= '0' && one <= '9') || one == '.' ||
         one == '_' || one == '-';
}

bool is_wildcard(char one) {
  return one == '*' || one == '?';
}

bool is_digit(char one) {
  return one >= '0' && one <= '9';
}

/// A list of names in their order, each only once.
class OrderedNames {
 public:
  void add(const Names& names) {
    for (const auto& name : names)
      if (m_seen.insert(name).second)
        m_names.push_back(name);
  }
  void keep(const Names& names, bool keeps_those) {
    const std::unordered_set<std::string> others(names.begin(), names.end());
    std::erase_if(m_names, [&](const std::string& name) { return others.contains(name) != keeps_those; });
    m_seen = {m_names.begin(), m_names.end()};
  }
  void keep_one_of_both(const Names& names) {
    const OrderedNames before = *this;
    keep(names, false);
    for (const auto& name : names)
      if (!before.m_seen.contains(name))
        add({name});
  }
  Names take() { return std::move(m_names); }

 private:
  Names m_names;
  std::unordered_set<std::string> m_seen;
};

class PatternReader {
 public:
  PatternReader(std::string_view text, const Group& group) : m_text(text), m_group(group) {}

  Result<Names> read() {
    OrderedNames names;
    skip_spaces();
    if (at_end())
      return error_at(0, "names no node");
    for (char sign = ',';;) {
      TRY_ASSIGN(const auto term, read_term());
      if (sign == ',')
        names.add(term);
      else if (sign == '^')
        names.keep_one_of_both(term);
      else
        names.keep(term, sign == '&');
      const auto before = m_at;
      skip_spaces();
      if (at_end())
        return names.take();
      const bool is_sign = std::string_view(",!&^").find(m_text[m_at]) != std::string_view::npos;
      if (!is_sign && before == m_at)
        return error_at(m_at, fmt::format("has `{}` in a name", to_utf8(m_text.substr(m_at, 1))));
      sign = is_sign ? m_text[m_at++] : ',';
      skip_spaces();
    }
  }

 private:
  [[nodiscard]] bool at_end() const { return m_at == m_text.size(); }
  void skip_spaces() {
    while (!at_end() && (m_text[m_at] == ' ' || m_text[m_at] == '\t'))
      ++m_at;
  }
  [[nodiscard]] tl::unexpected<Error> error_at(std::size_t at, const std::string& what) const {
    return fail(ErrorCode::usage, fmt::format("`{}` {} (column {})", to_utf8(m_text), what, at + 1),
                at < m_text.size() && (m_text[at] == ':' || (m_text[at] == '@' && at > 0))
                    ? "write what ssh needs as `{name: gpu1, address: 192.168.16.11, user: alice}`; a port stands in "
                      "ssh_config(5)"
                    : "write names as nodeset does: gpu[01-64], gpu[1-9/2], a,b, all!gpu07, @GROUP");
  }

  Result<Names> read_term() {
    const auto begin = m_at;
    const bool is_group = !at_end() && m_text[m_at] == '@';
    if (is_group)
      ++m_at;
    Names names{""};
    const auto begins_part = [&] {
      return !at_end() &&
             (is_name_character(m_text[m_at]) || is_wildcard(m_text[m_at]) || (is_group && m_text[m_at] == ':'));
    };
    while (begins_part() || (!at_end() && m_text[m_at] == '[')) {
      Names parts;
      if (m_text[m_at] == '[') {
        TRY_ASSIGN(parts, read_ranges());
      } else {
        const auto from = m_at;
        while (begins_part())
          ++m_at;
        parts.emplace_back(m_text.substr(from, m_at - from));
      }
      if (names.size() * parts.size() > k_most_nodes)
        return error_at(begin, fmt::format("stands for more than {} nodes", k_most_nodes));
      Names longer;
      for (const auto& name : names)
        for (const auto& part : parts)
          longer.push_back(name + part);
      names = std::move(longer);
    }
    if (m_at == begin + (is_group ? 1 : 0))
      return at_end() ? error_at(begin, "ends where a name should be")
                      : error_at(m_at, fmt::format("has `{}` where a name should be", to_utf8(m_text.substr(m_at, 1))));
    if (is_group)
      return read_groups(names, begin);
    if (std::ranges::any_of(names.front(), is_wildcard))
      return find_matching(names, begin);
    if (names.front().front() == '-' || names.front().front() == '.')
      return error_at(begin, "has a name that begins with `-` or `.`"); // ssh would read it as an option
    return names;
  }

  Result<Names> read_groups(const Names& groups, std::size_t begin) {
    if (m_group == nullptr)
      return error_at(begin, "names a group where there are none");
    Names all;
    for (const auto& group : groups) {
      TRY_ASSIGN(const auto names, m_group(group));
      all.insert(all.end(), names.begin(), names.end());
    }
    return all;
  }

  /// Returns all nodes that match one of the masks.
  Result<Names> find_matching(const Names& masks, std::size_t begin) {
    if (m_group == nullptr)
      return error_at(begin, "has `*` or `?` where there is no list of nodes to look in");
    auto names = m_group(std::string(k_every_node));
    if (!names)
      return names;
    std::erase_if(*names, [&](const std::string& name) {
      return std::ranges::none_of(masks,
                                  [&](const auto& mask) { return ::fnmatch(mask.c_str(), name.c_str(), 0) == 0; });
    });
    return names->empty() ? fail(ErrorCode::usage, fmt::format("`{}` fits no node", masks.front()),
                                 "`sharefs nodes list` shows them")
                          : names;
  }

  /// Reads "[01-64,70,80-90/2]".
  Result<Names> read_ranges() {
    const auto begin = m_at++;
    const auto end = m_text.find(']', m_at);
    if (end == std::string_view::npos)
      return error_at(begin, "has a `[` without its `]`");
    Names all;
    for (const auto& range : split(m_text.substr(m_at, end - m_at), ',')) {
      TRY_ASSIGN(auto numbers, read_range(trim(range), m_at));
      all.insert(all.end(), numbers.begin(), numbers.end());
      m_at += range.size() + 1;
    }
    m_at = end + 1;
    return all;
  }

  [[nodiscard]] Result<Names> read_range(std::string_view text, std::size_t at) const {
    const auto read = [](std::string_view digits) {
      constexpr std::uint64_t k_most = 1'000'000'000'000;
      const auto number = parse_number<std::uint64_t>(digits);
      return number && *number <= k_most ? number : std::nullopt;
    };
    const auto slash = text.find('/');
    const auto body = text.substr(0, slash);
    const auto dash = body.find('-');
    const auto from_text = trim(body.substr(0, dash));
    const auto to_text = dash == std::string_view::npos ? from_text : trim(body.substr(dash + 1));
    const auto from = read(from_text), to = read(to_text);
    const auto step = slash == std::string_view::npos ? std::optional<std::uint64_t>(1) : read(text.substr(slash + 1));
    if (!from || !to || !step || *step == 0 || (slash != std::string_view::npos && dash == std::string_view::npos))
      return error_at(at, fmt::format("has the range `{}`", to_utf8(text)));
    if (*to < *from)
      return error_at(at, fmt::format("has the range `{}`, which goes backwards", to_utf8(text)));
    const std::size_t width = from_text.size() > 1 && from_text.front() == '0' ? from_text.size() : 0;
    const bool is_padded = width != 0 || (to_text.size() > 1 && to_text.front() == '0');
    if (is_padded && from_text.size() != to_text.size())
      return error_at(at, fmt::format("has the range `{}`, whose ends have different widths", to_utf8(text)));
    if ((*to - *from) / *step >= k_most_nodes)
      return error_at(at, fmt::format("stands for more than {} nodes", k_most_nodes));
    Names numbers;
    for (auto number = *from; number <= *to; number += *step)
      numbers.push_back(fmt::format("{:0{}}", number, width));
    return numbers;
  }

  std::string_view m_text;
  const Group& m_group;
  std::size_t m_at = 0;
};

/// A name, split at its last number into the text before it, the number, and the text behind it.
struct Numbered {
  std::string before, behind;
  std::size_t width = 0; ///< 0: the number has no leading zeros
  std::uint64_t number = 0;
  bool has_number = false;
};

Numbered split_number(const std::string& name) {
  Numbered found{name, {}, 0, 0, false};
  const auto end = std::find_if(name.rbegin(), name.rend(), is_digit);
  const auto begin = std::find_if_not(end, name.rend(), is_digit);
  const std::string_view digits(&*name.begin() + (name.rend() - begin), static_cast<std::size_t>(begin - end));
  constexpr std::size_t k_most_digits = 12;
  if (digits.empty() || digits.size() > k_most_digits)
    return found;
  std::from_chars(digits.data(), digits.data() + digits.size(), found.number);
  found.before = name.substr(0, static_cast<std::size_t>(name.rend() - begin));
  found.behind = name.substr(static_cast<std::size_t>(name.rend() - end));
  found.width = digits.size() > 1 && digits.front() == '0' ? digits.size() : 0;
  found.has_number = true;
  return found;
}

std::string ranges_of(std::vector<std::uint64_t> numbers, std::size_t width) {
  std::ranges::sort(numbers);
  std::vector<std::string> ranges;
  for (std::size_t i = 0; i < numbers.size();) {
    auto last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1)
      ++last;
    ranges.push_back(last == i ? fmt::format("{:0{}}", numbers[i], width)
                               : fmt::format("{:0{}}-{:0{}}", numbers[i], width, numbers[last], width));
    i = last + 1;
  }
  return join(ranges, ",");
}

} // namespace

Result<std::vector<std::string>> expand(std::string_view pattern, const Group& group) {
  return PatternReader(pattern, group).read();
}

Result<std::vector<std::string>>
expand_words(std::string_view pattern, const std::function<bool(const std::string&)>& is_group, const Group& group) {
  std::string spelled;
  for (std::size_t at = 0; at < pattern.size();) {
    const auto end = std::min(pattern.find_first_of(",!&^ \t", at), pattern.size());
    const std::string word(pattern.substr(at, end - at));
    spelled += (is_group(word) ? "@" : "") + word;
    spelled += pattern.substr(end, 1);
    at = end + 1;
  }
  return expand(spelled, group);
}

std::string fold(const std::vector<std::string>& names) {
  struct Family {
    Numbered first;
    std::vector<std::uint64_t> numbers;
  };
  std::vector<Family> families; // in the order of their first names
  std::map<std::tuple<std::string, std::string, std::size_t>, std::size_t> known;
  for (const auto& name : names) {
    auto one = split_number(name);
    // A number that fills its width continues numbers with leading zeros: gpu09, gpu10.
    const auto digits = fmt::format("{}", one.number).size();
    auto found = known.end();
    if (one.has_number && one.width == 0 && digits > 1)
      found = known.find({one.before, one.behind, digits});
    if (one.has_number && found == known.end())
      found = known.find({one.before, one.behind, one.width});
    if (found != known.end()) {
      families[found->second].numbers.push_back(one.number);
      continue;
    }
    if (one.has_number)
      known.try_emplace({one.before, one.behind, one.width}, families.size());
    families.push_back({one, {one.number}});
  }
  std::vector<std::string> words;
  for (const auto& family : families) {
    const auto& first = family.first;
    if (!first.has_number)
      words.push_back(first.before);
    else if (family.numbers.size() == 1)
      words.push_back(fmt::format("{}{:0{}}{}", first.before, first.number, first.width, first.behind));
    else
      words.push_back(fmt::format("{}[{}]{}", first.before, ranges_of(family.numbers, first.width), first.behind));
  }
  return join(words, ",");
}

} // namespace sharefs::fleet
