#include "cachefix/launchers/launcher.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cctype>

namespace sharefs::cachefix {
namespace {

constexpr std::string_view k_run_nothing = "--help --version --usage -help -version"; // of every launcher

/// The names of Means, in their order.
constexpr std::string_view k_means = "directory assign assign_pair assign_list unset clear module no_python run_module "
                                     "run_text command_text split_text hostfile remote container information";
constexpr std::pair<std::string_view, Takes> k_takes[] = {
    {"==", Takes::two}, {"[=]", Takes::attached}, {"=", Takes::value}, {"", Takes::nothing}};

void add_options(const std::string& word, std::vector<KnownOption>& all) {
  if (const auto open = word.find('{'), close = word.find('}'); open != std::string::npos)
    return each_word(std::string_view(word).substr(open + 1, close - open - 1), ',', [&](std::string_view part) {
      add_options(word.substr(0, open) + std::string(part) + word.substr(close + 1), all);
    });
  const auto mark = std::min(word.find('@'), word.size());
  std::string_view names = std::string_view(word).substr(0, mark);
  KnownOption& option = all.emplace_back();
  int number = 0;
  each_word(k_means, ' ', [&](std::string_view name) {
    if (name == std::string_view(word).substr(std::min(mark + 1, word.size())))
      option.means = static_cast<Means>(number);
    ++number;
  });
  const auto* const takes = std::ranges::find_if(k_takes, [&](const auto& one) { return names.ends_with(one.first); });
  option.takes = takes->second;
  names.remove_suffix(takes->first.size());
  option.names = split(names, '/');
}

std::string dashes_alike(std::string_view name) {
  std::string out(name);
  std::ranges::replace(std::span(out).subspan(std::min<std::size_t>(2, out.size())), '_', '-');
  return out;
}

class Reader {
 public:
  Reader(const Launcher& launcher, const Argv& argv, std::size_t begin, std::size_t limit)
      : m_launcher(launcher), m_argv(argv), m_limit(std::min(limit, argv.size())), m_known(options_of(launcher)) {
    m_out.end = begin;
  }

  OptionsRead read() {
    while (m_out.end < m_limit && m_out.problem.empty() && !m_out.ended_by_option) {
      const std::string& word = m_argv[m_out.end];
      const bool shell_dash = m_launcher.tail == Tail::shell && word == "-"; // bash(1): the same as `--`
      if ((word == "--" && m_launcher.syntax != Syntax::single_dash) || shell_dash) {
        ++m_out.end;
        m_out.ended_by_dashes = true;
        break;
      }
      const bool plus = m_launcher.tail == Tail::shell && word.size() > 1 && word[0] == '+'; // bash +x
      if ((word.size() < 2 || word[0] != '-') && !plus)
        break;
      if (word.starts_with("--") || m_launcher.syntax == Syntax::single_dash)
        long_option(word);
      else
        short_options(word);
    }
    return std::move(m_out);
  }

 private:
  struct Match {
    const KnownOption* option = nullptr;
    int candidates = 0;
  };

  /// Is `name` one of the option's names, or with `prefix` the beginning of one?
  [[nodiscard]] bool is_named(const KnownOption& option, std::string_view name, bool prefix) const {
    return std::ranges::any_of(option.names, [&](std::string_view known) {
      if (m_launcher.syntax == Syntax::single_dash)
        return known.substr(std::min(known.find_first_not_of('-'), known.size())) == name;
      const bool is_long = known.starts_with("--");
      const std::string spelled = m_launcher.underscores && is_long ? dashes_alike(known) : std::string(known);
      return prefix ? is_long && spelled.starts_with(name) : is_listed(name, spelled);
    });
  }

  [[nodiscard]] Match search(std::string_view name, bool prefix) const {
    Match match;
    for (const KnownOption& option : m_known)
      if (is_named(option, name, prefix))
        match = {&option, match.candidates + 1};
    return match;
  }

  [[nodiscard]] bool is_argparse() const {
    return m_launcher.syntax == Syntax::argparse || m_launcher.syntax == Syntax::exact;
  }
  void stop(std::string problem) {
    m_out.problem = std::move(problem);
    m_out.problem_index = m_out.end;
  }
  void unknown(std::string_view name) {
    stop("`" + std::string(name) + "` is not an option of " + std::string(m_launcher.name) + " that sharefs knows");
  }

  void long_option(const std::string& word) {
    std::string name = word;
    std::optional<std::string> value;
    if (m_launcher.syntax == Syntax::single_dash) {
      name = word.substr(word.starts_with("--") ? 2 : 1);
    } else if (const auto equals = word.find('='); equals != std::string::npos) {
      name = word.substr(0, equals);
      value = word.substr(equals + 1);
    }
    if (m_launcher.underscores)
      name = dashes_alike(name);
    Match match = search(name, false);
    const bool abbreviates = m_launcher.syntax == Syntax::argparse || m_launcher.syntax == Syntax::getopt;
    if (match.option == nullptr && abbreviates && name.size() > 2)
      match = search(name, true);
    if (match.option == nullptr)
      return unknown(word.substr(0, word.find('=')));
    if (match.candidates > 1)
      return stop("`" + name + "` is short for more than one option of " + std::string(m_launcher.name));
    take(*match.option, std::move(value));
  }

  /// `-x`, `-xVALUE`, `-xyz`: letters one by one, the first that takes a value takes the rest of the word or the next.
  void short_options(const std::string& word) {
    const std::size_t index = m_out.end;
    for (std::size_t i = 1; i < word.size(); ++i) {
      const std::string name{'-', word[i]};
      const Match match = search(name, false);
      if (match.option == nullptr) {
        m_out.end = index;
        return unknown(word.size() > 2 ? word : name);
      }
      std::optional<std::string> rest;
      if (match.option->takes != Takes::nothing && i + 1 < word.size())
        rest = word.substr(i + 1);
      if (rest && rest->starts_with('=') && is_argparse())
        rest->erase(0, 1);
      m_out.end = index;
      const bool last = i + 1 == word.size() || rest.has_value();
      take(*match.option, rest);
      if (last || !m_out.problem.empty() || m_out.ended_by_option)
        return;
    }
  }

  void take(const KnownOption& option, std::optional<std::string> value) {
    GivenOption given;
    given.name = option.names.back();
    given.index = given.value_index = m_out.end;
    given.means = is_listed(given.name, k_run_nothing) ? Means::information : option.means;
    if (value && option.takes == Takes::nothing)
      return stop("`" + given.name + "` of " + std::string(m_launcher.name) + " takes no value");
    std::size_t next = m_out.end + 1;
    if (value) {
      given.value = *value;
      given.has_value = true;
    } else if (option.takes == Takes::value || option.takes == Takes::two) {
      const std::size_t wanted = option.takes == Takes::two ? 2 : 1;
      if (next + wanted > m_limit)
        return stop("the value of `" + given.name + "` is missing");
      if (is_argparse() && looks_like_option(m_argv[next]))
        return stop("`" + given.name + "` is followed by `" + m_argv[next] + "`, which " +
                    std::string(m_launcher.name) + " takes for an option");
      given.value = m_argv[next];
      if (wanted == 2)
        given.second = m_argv[next + 1];
      given.has_value = true;
      next += wanted;
      given.value_index = next - 1;
    }
    m_out.end = next;
    m_out.ended_by_option = given.means == Means::run_module || given.means == Means::run_text;
    m_out.given.push_back(std::move(given));
  }

  const Launcher& m_launcher;
  const Argv& m_argv;
  std::size_t m_limit;
  std::vector<KnownOption> m_known;
  OptionsRead m_out;
};

} // namespace

std::vector<KnownOption> options_of(const Launcher& launcher) {
  std::vector<KnownOption> all;
  each_word(launcher.options, ' ', [&](std::string_view word) { add_options(std::string(word), all); });
  return all;
}

OptionsRead read_options(const Launcher& launcher, const Argv& argv, std::size_t begin, std::size_t limit) {
  return Reader(launcher, argv, begin, limit).read();
}

const GivenOption* OptionsRead::last(Means means) const {
  const auto found = std::find_if(given.rbegin(), given.rend(), [&](const auto& one) { return one.means == means; });
  return found == given.rend() ? nullptr : &*found;
}

bool looks_like_option(const std::string& word) {
  if (word.size() < 2 || word[0] != '-' || word.find(' ') != std::string::npos)
    return false;
  return !std::all_of(word.begin() + 1, word.end(), [](unsigned char c) { return std::isdigit(c) != 0 || c == '.'; });
}

bool is_listed(std::string_view name, std::string_view list) {
  return any_word(list, ' ', [&](std::string_view word) {
    return word.ends_with('*')                        ? name.starts_with(word.substr(0, word.size() - 1))
           : word.size() > 1 && word.starts_with('*') ? name.ends_with(word.substr(1))
                                                      : name == word;
  });
}

} // namespace sharefs::cachefix
