#pragma once
// Conda installations on this host: for `sharefs conda list`.
#include "base/diagnosis.hpp"
#include "conda/homes.hpp"
#include "sys/system.hpp"

#include <string>
#include <vector>

namespace sharefs::conda {

/// An entry of `envs` that is a link.
struct EnvironmentLink {
  std::string name, target;
  friend bool operator==(const EnvironmentLink&, const EnvironmentLink&) = default;
};

struct Installation {
  std::string user;  ///< whose home it lies in; empty: of the host (/opt/conda and the like)
  std::string path;  ///< absolute
  std::string below; ///< path below the home (`miniconda3`); empty for one of the host
  bool envs_is_link = false;
  std::string envs_link;                 ///< where `envs` leads then: probably a store that was shared by hand
  std::vector<std::string> environments; ///< directories below `envs` that have a conda-meta; sorted
  std::vector<EnvironmentLink> links;    ///< links below `envs`, wherever they lead
  friend bool operator==(const Installation&, const Installation&) = default;
};

/// `envs_dirs` of a user's .condarc, or of this host's own (`user` is empty): further directories in which conda looks
/// for environments.
struct EnvironmentDirectory {
  std::string user, path;
  friend bool operator==(const EnvironmentDirectory&, const EnvironmentDirectory&) = default;
};
/// Of the text of a .condarc; without those of the home (`~`) and relative ones.
std::vector<std::string> environment_directories(std::string_view condarc);

struct Installations {
  std::vector<Installation> found; ///< by user in the order given, then those of the host
  std::vector<EnvironmentDirectory> directories;
  Diagnoses problems; ///< homes that could not be read (SF312); a home that is not there is none
  friend bool operator==(const Installations&, const Installations&) = default;
};

/// `places`, and the usual ones (miniconda3, anaconda3, miniforge3, mambaforge, micromamba, .conda, ...)
/// below the home of each user, read as that user (see homes.hpp); then those below /opt and /usr/local. No link below
/// a home is followed. As a user other than root only the own home is read.
Installations find_installations(sys::System& system, const std::vector<sys::User>& users,
                                 const std::vector<Homes>& places = {});

} // namespace sharefs::conda
