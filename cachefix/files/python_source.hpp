#pragma once
// What a Python program's source shows about its own option `cache_dir`: who gets its value. The interpreter's own
// parser says it, in a child; the source is never run. Pure.
#include "sys/programs/process.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace sharefs::cachefix {

/// What cannot be followed for certain counts as `other_use` or `escapes`, never as harmless.
struct SourceFacts {
  bool parsed = false;              ///< false: no interpreter answered, or it is no Python
  std::vector<std::string> imports; ///< top-level names of what it imports, anywhere in the file: "transformers"
  bool hf_arguments = false;        ///< HfArgumentParser is called: a lone JSON or YAML file stands for the options
  int definitions = 0;              ///< of the option: add_argument("--cache_dir"), dataclass or click/typer/fire/absl
  bool optional = false;            ///< there are definitions, each with the default None, and the code can do without:
                                    ///< no assert or exit, no default of its own, no expanduser(None)
  /// Calls that build a dataset, and those of them that get the option as their cache_dir. A call in a function that
  /// gets it from one caller and not from another counts twice, once with it. Metrics count only with it: without, they
  /// have a cache of their own.
  int dataset_calls = 0, dataset_calls_with = 0;
  /// The same of calls that read the hub: from_pretrained, hf_hub_download, snapshot_download, pipeline, and the like.
  /// Without: what is certainly a directory of the program's own (`from_pretrained(args.output_dir)`).
  int model_calls = 0, model_calls_with = 0;
  std::string other_use; ///< first place where the value goes elsewhere: "os.makedirs, line 12"; empty: nowhere
  std::string outputs;   ///< first place where a path made of it goes, other than to a dataset call: "np.load, line 30"
  /// Caches that the source names itself, as `NAME=VALUE`: variables that it sets (`NAME:=VALUE`: unless it is set),
  /// `cache_dir` that a loader of datasets gets, `--cache_dir`: the option's default.
  std::vector<std::string> caches;
  bool own_layout = false; ///< a loader gets it that may keep models there in a way of its own
  bool escapes = false;    ///< the whole namespace goes to code of another file (`train(args)` imported from there)
  friend bool operator==(const SourceFacts&, const SourceFacts&) = default;
};

/// The command that prints the facts: the system's `python3 -I -S -E -c PROGRAM`, the source on stdin. A source of more
/// than 512 KiB is not read.
sys::Command source_facts_command(const std::string& source, std::chrono::milliseconds deadline);
/// Reads what it printed; `parsed` is false for anything else.
SourceFacts parse_source_facts(const std::string& printed);

} // namespace sharefs::cachefix
