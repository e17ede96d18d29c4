// Caches that a program's own source names: variables that it sets, and paths that it writes out.
#include "base/path.hpp"
#include "base/text.hpp"
#include "cachefix/flags.hpp"

#include <algorithm>

namespace sharefs::cachefix {
namespace {

constexpr std::size_t k_near = 200; // characters behind a name in which its path stands

template <class Is> bool any_near(std::string_view source, std::string_view name, const Is& is) {
  for (auto at = source.find(name); at != std::string_view::npos; at = source.find(name, at + 1))
    if (is(source.substr(at, k_near)))
      return true;
  return false;
}

/// May the source name a cache, so that it is worth the interpreter's 50 ms?
bool may_name_caches(std::string_view source) {
  const auto names_variable = [](std::string_view near) {
    return near.find("_HOME") != std::string_view::npos || near.find("_CACHE") != std::string_view::npos;
  };
  const auto begins_path = [](std::string_view near) {
    for (std::size_t i = 1; i < near.size(); ++i)
      if ((near[i - 1] == '"' || near[i - 1] == '\'') &&
          std::string_view("/.~").find(near[i]) != std::string_view::npos)
        return true;
    return false;
  };
  return any_near(source, "environ", names_variable) || any_near(source, "cache_dir", begins_path);
}

bool is_given(const Launch& launch, const Program& program) {
  const auto names_it = [](const std::string& flag) {
    return is_spelling_of(flag, "--cache_dir") || flag.ends_with("cache_dir");
  };
  const auto flags = read_flags(launch.argv, program.begin, program.end);
  const auto words = std::span(launch.argv).subspan(program.begin, program.end - program.begin);
  return std::ranges::any_of(flags, names_it, &Occurrence::flag) ||
         std::ranges::any_of(words, [&](const std::string& word) {
           return names_it(word.substr(0, word.find('='))) || word.find(".json") != std::string::npos ||
                  word.find(".y") != std::string::npos || word.starts_with('@');
         });
}

class SourceCaches {
 public:
  SourceCaches(const Launch& launch, const Program& program, Environment& environment)
      : m_launch(launch), m_program(program), m_environment(environment) {}

  Decisions find() {
    const SourceFacts& facts = m_launch.source(m_program);
    for (const std::string& one : facts.caches) {
      std::string name = one.substr(0, one.find('='));
      const std::string value = one.substr(one.find('=') + 1);
      if (name == "cache_dir")
        say(name, value, "let it take its cache from HF_DATASETS_CACHE");
      else if (name == "--cache_dir") {
        if (facts.dataset_calls_with > 0 && !is_given(m_launch, m_program))
          say(name, value, "give `--cache_dir DIRECTORY`");
      } else if (name.ends_with(':')) {
        name.pop_back();
        m_environment.emplace(name, value);
      } else
        set(name, value);
    }
    return std::move(m_out);
  }

 private:
  /// What caches are made below goes around the program, too; a cache's own variable is set anew by the source. It may
  /// do so in a branch: a path that is not shared hides none that is.
  void set(const std::string& name, const std::string& value) {
    if (is_moved(name) && name != "HF_HOME")
      say(name, value, "let it keep `" + name + "` where it is set already: os.environ.setdefault");
    else if (m_launch.shared_path(m_program, value))
      m_environment[name] = value;
    else
      m_environment.emplace(name, value);
  }

  void say(const std::string& name, const std::string& value, std::string hint) {
    const auto path = m_launch.shared_path(m_program, value);
    if (!path || stays_safely(m_launch, name, *path, m_launch.is_offline(m_program, name)))
      return;
    m_out.push_back(warning("SF412", m_program.kind == ProgramKind::text ? "python -c" : base_name(m_program.name),
                            "its own `" + name + "` is " + value + ", which lies on shared storage and was left",
                            std::move(hint)));
  }

  const Launch& m_launch;
  const Program& m_program;
  Environment& m_environment;
  Decisions m_out;
};

} // namespace

Decisions add_source_caches(const Launch& launch, Environment& environment) {
  Decisions out;
  for (const Program& program : launch.walk.programs)
    if (const std::string* source = program.python ? launch.source_text(program) : nullptr;
        source != nullptr && may_name_caches(*source))
      append(out, SourceCaches(launch, program, environment).find());
  return out;
}

} // namespace sharefs::cachefix
