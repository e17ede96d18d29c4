#pragma once
// Values of sys <-> JSON, as recordings and the scripts of tests hold them (see scripted_system.hpp).
// from_json throws nlohmann::json::exception: catch it in the file that parses.
#include "sys/system.hpp"

#include <nlohmann/json_fwd.hpp>

namespace sharefs {

void to_json(nlohmann::json& document, const Error& error);
void from_json(const nlohmann::json& document, Error& error);

namespace sys {

void to_json(nlohmann::json& document, const User& user);
void from_json(const nlohmann::json& document, User& user);
void to_json(nlohmann::json& document, const Identity& identity);
void from_json(const nlohmann::json& document, Identity& identity);
void to_json(nlohmann::json& document, const Completed& completed);
void from_json(const nlohmann::json& document, Completed& completed);
void to_json(nlohmann::json& document, const PathProbe& probe);
void from_json(const nlohmann::json& document, PathProbe& probe);
void to_json(nlohmann::json& document, const PathFact& fact);
void from_json(const nlohmann::json& document, PathFact& fact);
void to_json(nlohmann::json& document, const NfsProbe& probe);
void from_json(const nlohmann::json& document, NfsProbe& probe);

/// Any bytes: a string if they are UTF-8, else {"latin1": "..."} with one character per byte.
nlohmann::json bytes_to_json(const std::string& bytes);
std::string bytes_from_json(const nlohmann::json& document);

/// "2026-01-01T00:00:00Z"
std::string format_time(std::chrono::system_clock::time_point time);
/// Throws std::invalid_argument.
std::chrono::system_clock::time_point parse_time(const std::string& text);

} // namespace sys
} // namespace sharefs
