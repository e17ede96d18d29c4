#pragma once
// What the wrapper knows of the machine, as values, and what it still wants to know. sanitize() is pure: it answers
// with questions where a fact is missing, and answer() finds the answers until there is no question left.
#include "cachefix/local_root.hpp"
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sharefs::cachefix {

struct Facts {
  std::vector<std::string> environment;                    ///< NAME=value
  std::string directory;                                   ///< working directory
  std::string home;                                        ///< by passwd
  std::optional<bool> any_shared;                          ///< some mount of this host is shared; if not, no path is
  std::map<std::string, sys::Entry> places;                ///< by the path as it was asked, through links
  std::map<std::string, std::optional<std::string>> texts; ///< contents of files; nullopt: not there or not readable
  std::map<std::string, std::optional<std::vector<std::string>>> listings; ///< names in directories; nullopt: no answer
  std::map<std::string, std::optional<std::string>> trees;   ///< shell text -> syntax tree as JSON; nullopt: no parser
  std::map<std::string, std::vector<std::string>> leftovers; ///< cache directory -> `*.incomplete` directories in it
  std::optional<LocalRoot> local;
};

struct Questions {
  std::set<std::string> places, texts, listings, trees, leftovers;
  bool mounts = false; ///< is any of them shared?
  bool local = false;
  void merge(Questions&& other) {
    places.merge(other.places);
    texts.merge(other.texts);
    listings.merge(other.listings);
    trees.merge(other.trees);
    leftovers.merge(other.leftovers);
    mounts = mounts || other.mounts;
    local = local || other.local;
  }
  [[nodiscard]] bool empty() const {
    return places.empty() && texts.empty() && listings.empty() && trees.empty() && leftovers.empty() && !mounts &&
           !local;
  }
};

/// The first facts: environment and working directory as given.
Facts first_facts(sys::System& system, std::vector<std::string> environment, std::string directory);
/// Adds the answers to the facts; every question gets one, be it "no answer". Fails if the mount table is needed and
/// cannot be read.
Result<void> answer(sys::System& system, const LocalChoice& local, const Questions& questions, Facts& facts);

} // namespace sharefs::cachefix
