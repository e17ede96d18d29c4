#pragma once
// Options of a program that name caches: where they stand, among its arguments or in files that they name. Internal to
// the heart.
#include "cachefix/launch.hpp"

namespace sharefs::cachefix {

/// Where the value of a flag stands, which decides how it is changed.
enum class Spot {
  word,     ///< `--key value`, `--key=value`
  pair,     ///< `key=value`: may stand against a value in a file
  file,     ///< in a file that is read besides: an override goes into the command line
  document, ///< in the file that is read instead of a command line: a changed copy takes its place
};

/// One flag of a program, among its arguments or in a file that they name.
struct Occurrence {
  Spot spot = Spot::word;
  std::string flag = {};       ///< as spelled, without `=value`
  std::size_t name_index = 0;  ///< of the word with the flag, or with the file's name
  std::size_t value_index = 0; ///< of the word with the value, or with the file's name
  std::size_t value_begin = 0; ///< offset of the value in that word
  std::string value = {};
  AppliedRule rule = {};
  std::size_t insert_at = 0;       ///< file: the override goes in front of this word
  std::string override_start = {}; ///< file: `key=`, to which the value is attached, or `--key`, which it follows
  std::string file = {};           ///< document: the path of the original
  std::string derived = {};        ///< another setting that is made of this one: `local_run_dir: ${cache_dir}/run`
};
using Occurrences = std::vector<Occurrence>;

/// All options among argv[begin, end) that have a value, `--key value` and `--key=value`, in their order; without a
/// rule yet.
Occurrences read_flags(const Argv& argv, std::size_t begin, std::size_t end);
/// Does the name of an option, or of a key in a file, say that datasets may be cached there?
bool names_cache(std::string_view name);
/// The rule for the option of this name, as `a.b.cache_dir` too.
std::optional<AppliedRule> rule_for_key(const Launch& launch, const Program& program, const Framework* framework,
                                        const std::string& key);
/// `key=value` and `a.b.key=value` among the arguments, as occurrences of the flag `--key`. Values that are no plain
/// paths (Hydra's sweeps and interpolations) are said in `out`.
Occurrences find_overrides(const Launch& launch, const Program& program, const Framework* framework, Decisions& out);
/// The caches that files name which this program reads: LLaMA-Factory YAML with key=value, HfArgumentParser JSON and
/// YAML, `<script>.args`, `@file`, axolotl's YAML, Hydra's files. What cannot be changed safely is said in `out`.
Occurrences find_in_files(const Launch& launch, const Program& program, const Framework* framework, Decisions& out);
/// Where LLaMA-Factory's `data_shared_file_system` is set to true: then one node builds the datasets for all, and the
/// others would wait for what never comes on their own disks.
std::optional<Occurrence> find_shared_file_system(const Launch& launch, const Program& program,
                                                  const Framework* framework);
/// A copy of the document of an occurrence with another value, or without the key; the program gets the copy. The
/// original is never edited. nullopt: there is no directory where its user may write and its nodes can read.
std::optional<Decision> changed_copy(const Launch& launch, const Program& program, const Occurrence& one,
                                     const std::optional<std::string>& value);
/// One flag whose last occurrence lies at a shared path: what is at stake, and so which way it is taken off there.
Verdict judge_flag(const Launch& launch, const Program& program, const Occurrences& all, const std::string& path);

} // namespace sharefs::cachefix
