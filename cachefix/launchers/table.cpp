// How a row of launchers.txt is found.
#include "base/path.hpp"
#include "base/text.hpp"
#include "cachefix/launchers/launcher.hpp"

#include <iterator>
#include <set>

namespace sharefs::cachefix {
namespace {

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
      const auto or_else = [](std::string text, std::string other) { return text.empty() ? other : text; };
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

bool names_some_program(std::span<const std::string> words) {
  constexpr std::string_view k_scripts = "*.py *.sh *.pbs *.sbatch *.slurm *.sub";
  bool of_tool = false;
  for (const std::string& word : words) {
    const Argv parts = split_words(word);
    of_tool = parts.size() == 1 && (is_listed(word, words_of("looks")) || (of_tool && !is_listed(word, "; && || |")));
    if (of_tool) // ssh node1 pkill -f train.py
      continue;
    if (parts.size() > 1 && is_plain_tool(parts[0]) && word.find_first_of(";&|\n`$(") == std::string::npos)
      continue; // ssh node1 "pkill -f train.py"
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (is_listed(parts[i], k_scripts) || find_launcher(parts, i, parts.size()) != nullptr)
        return true;
  }
  return false;
}

bool starts_container(std::span<const std::string> words) {
  static constexpr std::string_view k_options = "--container* --no-container* --singularity-container*";
  static constexpr std::string_view k_marks = "()[]{}\"'`;|&=$<>,";
  std::vector<std::string> pieces;
  for (std::string word : words) {
    const Argv parts = split_words(word);
    const auto is_given = [](const std::string& part) { return part.starts_with('-') || part.find('/') != part.npos; };
    if (parts.size() > 1 && !names_some_program(parts) && std::ranges::none_of(parts, is_given))
      continue; // "docker run failed"
    std::ranges::replace_if(word, [](char c) { return k_marks.find(c) != std::string_view::npos; }, ' ');
    std::ranges::move(split_words(word), std::back_inserter(pieces));
  }
  if (std::ranges::any_of(pieces, [](const std::string& piece) { return is_listed(piece, k_options); }))
    return true;
  std::set<const Row*> runs; // those of which a verb stands behind
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
  const std::string path(program); // `./test` is a program of the user's
  const bool own = path.find('/') != std::string::npos && !is_listed(base_name(parent_path(path)), "bin sbin");
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
