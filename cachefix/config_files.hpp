#pragma once
// Files and overrides that say where caches are: LLaMA-Factory YAML with key=value, HfArgumentParser JSON and YAML,
// `<script>.args`, `@file`, axolotl's YAML, Hydra's overrides and files. Originals are never edited.
#include "cachefix/draft.hpp"

namespace sharefs::cachefix {

/// `key=value` and `a.b.key=value` among the arguments, as occurrences of the flag `--key`.
std::vector<Occurrence> find_overrides(const Program& program, const Framework* framework, const Draft& draft);
/// The caches that files name which this program reads. What cannot be changed safely is reported.
std::vector<Occurrence> find_in_files(Draft& draft, const Program& program, const Framework* framework);
/// Where LLaMA-Factory's `data_shared_file_system` is set to true: then one node builds the datasets for all, and the
/// others would wait for what never comes on their own disks. nullopt: it is not, or not known yet.
std::optional<Occurrence> find_shared_file_system(Draft& draft, const Program& program, const Framework* framework);
/// A copy of the document of an occurrence with another value, or without the key, beside the original; the program
/// gets the copy.
void use_changed_copy(Draft& draft, const Occurrence& one, const std::optional<std::string>& value);

} // namespace sharefs::cachefix
