#include "cachefix/launchers/launcher.hpp"

#include "base/text.hpp"

namespace sharefs::cachefix {
namespace {

constexpr std::string_view k_run_nothing = "--help --version --usage -help -version"; // the same for every launcher

/// The names of the enumerators of Means, in their order.
constexpr std::string_view k_means = "directory assign assign_pair assign_list unset clear module no_python run_module "
                                     "run_text command_text hosts container command_file hands_on isolates information";
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
  option.means = enumerator<Means>(k_means, std::string_view(word).substr(std::min(mark + 1, word.size())));
  const auto* const takes = std::ranges::find_if(k_takes, [&](const auto& one) { return names.ends_with(one.first); });
  option.takes = takes->second;
  names.remove_suffix(takes->first.size());
  option.names = split(names, '/');
}

/// Reads the options of one launcher from a command line.
class OptionReader {
 public:
  OptionReader(const Launcher& launcher, const Argv& argv, std::size_t begin, std::size_t limit)
      : m_launcher(launcher), m_options(options_of(launcher.get("options"))),
        m_clusters(std::ranges::none_of(m_options, has_long_name)), m_argv(argv),
        m_limit(std::min(limit, argv.size())) {
    m_out.end = begin;
  }

  OptionsRead read() {
    const bool shell = m_launcher.tail == Tail::shell;
    while (m_out.end < m_limit && m_out.problem.empty() && !m_out.ended_by_option) {
      const std::string& word = m_argv[m_out.end];
      if (word == "--" || (shell && word == "-")) { // bash(1): `-` ends the options like `--`
        ++m_out.end;
        break;
      }
      const bool plus = shell && word.size() > 1 && word[0] == '+';                     // bash +x
      if ((word.size() < 2 || word[0] != '-') && !plus && find_option(word) == nullptr) // `-` is an option of env
        break;
      if (!read_whole(word))
        read_letters(word);
    }
    return std::move(m_out);
  }

 private:
  static bool has_long_name(const KnownOption& option) {
    return std::ranges::any_of(option.names, [](const auto& name) { return name.size() > 2 && name[1] != '-'; });
  }
  /// Returns the only option with a name that `fits`; nullptr if none has, or several have.
  template <class Fits> [[nodiscard]] const KnownOption* find_only(const Fits& fits) const {
    const KnownOption* found = nullptr;
    for (const KnownOption& option : m_options)
      if (std::ranges::any_of(option.names, fits)) {
        if (found != nullptr)
          return nullptr;
        found = &option;
      }
    return found;
  }
  [[nodiscard]] const KnownOption* find_option(const std::string& name) const {
    return find_only([&](const std::string& known) { return is_listed(name, underscored(known)); });
  }

  /// Reads a word that is one option: `--name`, `--name=value`, the abbreviation `--nam`, `-name`, or `--name` if the
  /// row has `-name`. False if it is none of the row.
  bool read_whole(const std::string& word) {
    const auto equals = std::min(word.find('='), word.size());
    const std::string name = underscored(word.substr(0, equals));
    const KnownOption* option = find_option(name);
    if (option == nullptr && !m_clusters && name.starts_with("--"))
      option = find_option(name.substr(1));
    if (option == nullptr && name.starts_with("--") && name.size() > 2)
      option = find_only([&](const std::string& known) { return underscored(known).starts_with(name); });
    if (option == nullptr)
      return false;
    read_value(*option, equals < word.size() ? std::optional(word.substr(equals + 1)) : std::nullopt);
    return true;
  }

  /// Reads `-x`, `-xVALUE` or `-xyz` letter by letter. The first option with a value gets the rest of the word, or the
  /// next word.
  void read_letters(const std::string& word) {
    const std::size_t index = m_out.end;
    for (std::size_t i = 1; i < word.size() && m_out.problem.empty() && !m_out.ended_by_option; ++i) {
      const KnownOption* option = m_clusters ? find_option({'-', word[i]}) : nullptr;
      m_out.end = index;
      if (option == nullptr || word.starts_with("--")) {
        m_out.problem =
            "`" + word.substr(0, word.find('=')) + "` is not an option of " + m_launcher.name + " that sharefs knows";
        return;
      }
      const bool rest = option->takes != Takes::nothing && i + 1 < word.size();
      read_value(*option, rest ? std::optional(word.substr(i + 1)) : std::nullopt);
      if (rest)
        return;
    }
  }

  /// Adds an option that was given. `value` is the value attached to it; others are the words behind it.
  void read_value(const KnownOption& option, std::optional<std::string> value) {
    GivenOption given{.name = option.names.back(), .means = option.means, .index = m_out.end, .value_index = m_out.end};
    if (is_listed(given.name, k_run_nothing))
      given.means = Means::information;
    std::size_t wanted = option.takes == Takes::two ? 2 : option.takes == Takes::value && !value ? 1 : 0;
    std::size_t next = m_out.end + 1;
    if (given.means == Means::assign_pair && next < m_limit && m_argv[next].find('=') != std::string::npos) {
      given.means = Means::assign; // PALS and Hydra take `-env NAME=value`
      wanted = 1;
    }
    if (next + wanted > m_limit) {
      m_out.problem = "the value of `" + given.name + "` is missing";
      return;
    }
    if (wanted > 0) {
      value = join({m_argv.begin() + static_cast<std::ptrdiff_t>(next),
                    m_argv.begin() + static_cast<std::ptrdiff_t>(next + wanted)},
                   "=");
      next += wanted;
      given.value_index = next - 1;
    }
    given.value = value.value_or("");
    if (given.means == Means::unset && given.value.find('=') != std::string::npos)
      given.means = Means::assign; // flux takes `--env=NAME=value`, and `--env=-NAME`
    m_out.end = next;
    m_out.ended_by_option = given.means == Means::run_module || given.means == Means::run_text;
    m_out.given.push_back(std::move(given));
  }

  const Launcher& m_launcher;
  std::vector<KnownOption> m_options;
  bool m_clusters; ///< `-abc` is three options; false for MPI, whose `-np` is one
  const Argv& m_argv;
  std::size_t m_limit;
  OptionsRead m_out;
};

} // namespace

std::vector<KnownOption> options_of(const std::string& options) {
  std::vector<KnownOption> all;
  each_word(options, ' ', [&](std::string_view word) { add_options(std::string(word), all); });
  return all;
}

OptionsRead read_options(const Launcher& launcher, const Argv& argv, std::size_t begin, std::size_t limit) {
  return OptionReader(launcher, argv, begin, limit).read();
}

const GivenOption* OptionsRead::last(Means means) const {
  const auto found = std::find_if(given.rbegin(), given.rend(), [&](const auto& one) { return one.means == means; });
  return found == given.rend() ? nullptr : &*found;
}

} // namespace sharefs::cachefix
