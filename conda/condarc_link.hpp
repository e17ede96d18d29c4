#pragma once
// Private to the conda room: `conda link --condarc`, the store in a user's .condarc instead of links.
#include "conda/homes.hpp"
#include "conda/link.hpp"

namespace sharefs::conda {

/// What is set for all users of this host.
std::vector<EnvsVariable> host_envs_variables(sys::System& system);

/// Fills HomeState::condarc, or the problem.
void read_condarc(HomeReader& reader, const LinkRequest& request, const std::vector<EnvsVariable>& of_host,
                  HomeState& home);

/// Why the user could not start this Python of the store; empty: it starts, or there is none.
std::string reason_to_fail(const sys::User& user, const sys::Entry& python);

/// Of a home without a problem; the summary is the caller's.
Decision decide_condarc(const HomeState& home, const LinkRequest& request);

} // namespace sharefs::conda
