// Finds the rows of launchers.txt, and the words that name programs.
#include "base/path.hpp"
#include "base/text.hpp"
#include "cachefix/launchers/walk.hpp"
#include "cachefix/shell_text.hpp"

#include <iterator>
#include <set>

namespace sharefs::cachefix {
namespace {

/// True if words[at] is a console script of Python that may build datasets (`vllm serve`, but not `vllm --version`).
bool is_python_tool(std::span<const std::string> words, std::size_t at) {
  return is_listed(base_name(words[at]), words_of("python")) &&
         (at + 1 == words.size() || !is_listed(words[at + 1], "stop status --version --help list pip add sync login"));
}

/// True if words[at] starts a program that no table knows: by a path, by a variable, or as a target of make. `host`:
/// words[0] may name a host. Then a variable counts only as the last word, and not if an option makes ssh a tunnel.
bool is_unknown_program(const Argv& words, std::size_t at, bool host) {
  const bool last = at + 1 == words.size();
  if (words[at].starts_with('$'))
    return host ? at > 0 && last && !any_listed(words, "-N -fN* -nN* -L -R -D -W") : at == 0;
  const bool is_command = host ? at > 0 && (words[at - 1] == "--" || !words[at - 1].starts_with('-')) : at == 0;
  return is_command && is_listed(words[at], "./* /* make just") && !is_plain_tool(words[at]);
}

/// True if the words start a program that may be Python. `source train.sh` counts, unless it is a script that only sets
/// variables; a tool does not. `host`: words[0] may name a host. `any`: programs that no table knows count, too.
bool starts_program(const Argv& words, bool host, bool any) {
  constexpr std::string_view k_scripts = "*.py *.sh *.pbs *.sbatch *.slurm *.sub";
  const bool sources = is_listed(words[0], "source .");
  if (words == Argv{"env"} || (words.size() > 1 && words[0] == "command" && words[1].starts_with('-')))
    return false; // `command -v python` only searches it
  if (sources ? words.size() > 1 && is_listed(words[1], words_of("settings")) : is_plain_tool(words[0]))
    return !sources &&
           find_launcher(words, 0, words.size()) != nullptr; // conda is a tool, but `conda run` is a launcher
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string& word = words[at];
    const Launcher* row = find_launcher({word}, 0, 1);
    if (is_listed(word, words_of("looks")) || builds_nothing(row, std::span(words).subspan(at)))
      return false;
    if (at > 0 && word.find(' ') != std::string::npos && names_some_program({&word, 1}, any))
      return true; // ssh node1 "tmux new 'python train.py'"
    const bool script = is_listed(word, k_scripts) && word.find('*') == std::string::npos;
    if (script || row != nullptr || ((at > 0 || !host) && is_python_tool(words, at)))
      return true;
    any = any && (at == 0 || !is_plain_tool(word)); // words behind a tool are its arguments
    if (any && is_unknown_program(words, at, host))
      return true;
  }
  return false;
}

/// True if a Python text seems to print something only: `import torch; print(torch.__version__)`.
bool only_prints(const std::string& text) {
  constexpr std::string_view k_may_build[] = {"dataset", "train", "eval", "load", "run", "main"};
  return std::ranges::none_of(k_may_build, [&](auto part) { return text.find(part) != std::string::npos; }) &&
         std::ranges::all_of(split(text, ';'), [](const std::string& statement) {
           return is_listed(trim(statement), "import* from* print(*");
         });
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

bool builds_nothing(const Launcher* row, std::span<const std::string> words) {
  if (row == nullptr || row->tail != Tail::python)
    return false;
  const Walk walked = walk({words.begin(), words.end()}, "/");
  return !walked.elsewhere && std::ranges::all_of(walked.programs, [](const Program& program) {
    return is_plain_tool(program) || (program.kind == ProgramKind::text && only_prints(program.name));
  });
}

bool names_some_program(std::span<const std::string> words, bool any) {
  std::string text; // as ssh gives it to a shell; a word with spaces is a command line and gets its own line
  for (const std::string& word : words)
    text += (word.find_first_of(" \t\n") == std::string::npos ? " " : "\n") + word;
  return std::ranges::any_of(commands_of(text), [&](const Command& command) {
    return !command.words.empty() && starts_program(command.words, command.line == 1, any);
  });
}

bool starts_container(std::span<const std::string> words) {
  static constexpr std::string_view k_options = "--container* --no-container* --singularity-container*";
  static constexpr std::string_view k_marks = "()[]{}\"'`;|&=$<>,";
  std::vector<std::string> pieces;
  for (std::string word : words) {
    const Argv parts = split_words(word);
    const auto is_given = [](const std::string& part) { return part.starts_with('-') || part.find('/') != part.npos; };
    if (parts.size() > 1 && !names_some_program(parts) && std::ranges::none_of(parts, is_given))
      continue; // a message such as "docker run failed"
    std::ranges::replace_if(word, [](char c) { return k_marks.find(c) != std::string_view::npos; }, ' ');
    std::ranges::move(split_words(word), std::back_inserter(pieces));
  }
  if (any_listed(pieces, k_options))
    return true;
  std::set<const Row*> runs; // rows with a verb behind this piece
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece)
    for (const Row& row : rows_of("elsewhere")) {
      if (row.has("container") && is_listed(base_name(*piece), row.name) && (!row.has("by") || runs.contains(&row)))
        return true;
      if (is_listed(*piece, row.get("by")))
        runs.insert(&row);
    }
  return false;
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

const Launcher* find_module_launcher(std::string_view module) {
  return first_row([&](const Launcher& row) { return is_listed(module, row.get("modules")); });
}

} // namespace sharefs::cachefix
