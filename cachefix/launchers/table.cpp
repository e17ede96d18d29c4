// Finds the rows of launchers.txt, and the words that name programs.
#include "base/path.hpp"
#include "base/text.hpp"
#include "cachefix/launchers/walk.hpp"
#include "cachefix/words.hpp"

#include <iterator>
#include <set>

namespace sharefs::cachefix {
namespace {

constexpr std::string_view k_scripts = "*.py *.sh *.pbs *.sbatch *.slurm *.sub";
constexpr std::size_t k_most_inner_words = 32; // of a command within a command: more count as a program

/// True if this program of a command may be Python.
bool may_be_python(const Argv& words, const Program& program, int depth) {
  if (is_plain_tool(program))
    return false;
  if (program.kind == ProgramKind::shell)
    return std::ranges::any_of(split_into_lists(program.name),
                               [&](const WordList& list) { return starts_program(list.words, depth); });
  if (program.kind != ProgramKind::program || is_listed(program.name, k_scripts))
    return true;
  if (program.python) // `vllm serve`, but not `vllm --version`
    return program.begin >= program.end ||
           !is_listed(words[program.begin], "stop status --version --help list pip add sync login");
  return !program.chain.empty() || is_listed(program.name, "./* /* $* make");
}

/// Returns the place of the command behind the options and the host of ssh and the like; words.size() if no word is
/// known.
std::size_t find_command(const Argv& words) {
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string& word = words[at];
    const bool own = at > 0 && (words[at - 1] == "--" || !words[at - 1].starts_with('-'));
    const bool path = own && is_listed(word, "./* /* make");
    // A variable counts only as the last word, and not if an option makes ssh a tunnel.
    const bool variable =
        at > 0 && at + 1 == words.size() && word.starts_with('$') && !any_listed(words, "-N -fN* -nN* -L -R -D -W");
    const bool known = at > 0 && (is_known_command(words, at) || is_listed(base_name(word), words_of("python")));
    if (path || variable || known || is_listed(word, k_scripts) || find_launcher(words, at, words.size()) != nullptr)
      return at;
  }
  return words.size();
}

/// Returns the word behind the last of these options; `otherwise` if none is given.
std::string word_behind(const Argv& words, const std::string& options, std::string otherwise) {
  for (std::size_t i = 1; i < words.size(); ++i)
    if (is_listed(words[i - 1], options))
      otherwise = words[i];
  return otherwise;
}

template <class Is> const Launcher* first_row(const Is& is) {
  const auto found = std::ranges::find_if(launchers(), is);
  return found == launchers().end() ? nullptr : &*found;
}

} // namespace

const Row* find_opaque(const std::string& word) {
  const auto& rows = rows_of("elsewhere");
  const auto known = std::ranges::find_if(rows, [&](const Row& row) { return is_listed(base_name(word), row.name); });
  return known == rows.end() ? nullptr : &*known;
}

const std::vector<Launcher>& launchers() {
  static const std::vector<Launcher> k_rows = [] {
    std::vector<Launcher> all;
    for (const Row& row : rows_of("launcher")) {
      const auto space = std::min(row.name.find(' '), row.name.size());
      const auto or_else = [](const std::string& text, const std::string& other) {
        return text.empty() ? other : text;
      };
      all.push_back(
          {row, row.name, or_else(row.get("programs"), row.name.substr(0, space)),
           or_else(row.get("verbs"), row.name.substr(std::min(space + 1, row.name.size()))),
           enumerator<Tail>("command script python shell batch contexts", row.get("tail")).value_or(Tail::command),
           enumerator<Carries>("yes python mpi", row.get("carries")).value_or(Carries::yes)});
    }
    return all;
  }();
  return k_rows;
}

bool names_some_program(std::span<const std::string> words, int depth) {
  std::string text; // as ssh gives it to a shell; a word with spaces is a command line and gets its own line
  for (const std::string& word : words)
    text += (word.find_first_of(" \t\n") == std::string::npos ? " " : "\n") + word;
  const WordLists lists = split_into_lists(text);
  return std::ranges::any_of(lists, [&](const WordList& list) {
    const bool host = &list == &lists.front() && list.line == 1;
    return starts_program(std::span(list.words).subspan(host ? find_command(list.words) : 0), depth);
  });
}

bool starts_program(std::span<const std::string> given, int depth) {
  const auto is_in_front = [](const std::string& word) {
    return assigns_variable(word) || is_listed(word, words_of("keywords"));
  };
  const Argv words(std::ranges::find_if_not(given, is_in_front), given.end());
  if (words.empty() || (words.size() > 1 && words[0] == "command" && words[1].starts_with('-')))
    return false;                      // `command -v python` only searches it
  if (is_listed(words[0], "source .")) // a script that only sets variables does not count
    return words.size() > 1 && is_listed(words[1], k_scripts) && !is_listed(words[1], words_of("settings"));
  if (depth == k_deepest || (depth > 0 && words.size() > k_most_inner_words))
    return true;
  const Walk walked = walk(words, "/", depth + 1);
  return walked.elsewhere || std::ranges::any_of(walked.programs, [&](const Program& program) {
           return may_be_python(words, program, depth + 1);
         });
}

bool is_plain_tool(std::string_view program) {
  const std::string path(program); // `./test` is a program of the user, not the tool
  const bool own = path.find('/') != std::string::npos && !is_listed(base_name(parent_path(path)), "bin sbin build");
  return !own && is_listed(base_name(path), words_of("tools"));
}

const Launcher* find_launcher(const Argv& argv, std::size_t at, std::size_t end) {
  const std::string name = base_name(argv[at]);
  return first_row([&](const Launcher& row) { return is_listed(name, row.programs) && has_verb(row, argv, at, end); });
}

bool has_verb(const Launcher& launcher, const Argv& argv, std::size_t at, std::size_t end) {
  return launcher.verbs.empty() || (at + 1 < end && is_listed(argv[at + 1], launcher.verbs));
}

std::string find_commands_file(const Argv& words) {
  const auto& rows = rows_of("reads");
  const auto row = std::ranges::find_if(rows, [&](const Row& one) {
    return any_listed(words, one.name) && (!one.has("by") || any_listed(words, one.get("by")));
  });
  if (row == rows.end())
    return {};
  const std::string directory = word_behind(words, row->get("directory"), "");
  const std::string file =
      word_behind(words, row->get("options"), row->has("last") ? words.back() : row->get("default"));
  return directory.empty() ? file : join_path(directory, file);
}

bool is_known_command(const Argv& words, std::size_t at) {
  return find_launcher(words, at, words.size()) != nullptr || find_opaque(words[at]) != nullptr ||
         is_plain_tool(words[at]);
}

const Launcher* find_module_launcher(std::string_view module) {
  return first_row([&](const Launcher& row) { return is_listed(module, row.get("modules")); });
}

} // namespace sharefs::cachefix
