#pragma once
// Lexical path functions: none touches the file system, so none can hang on a dead mount.
#include <string>
#include <string_view>
#include <vector>

namespace sharefs {

/// Returns an absolute path without `.`, `..`, double or trailing slashes. A relative `path` starts at `directory`.
/// `..` is resolved lexically; sys::walk resolves it through links.
std::string normalize_path(std::string_view path, std::string_view directory = "/");
/// True if `path` is `directory` or lies below it; both normalized. "/data2" is not under "/data".
bool is_under(std::string_view path, std::string_view directory);
std::string parent_path(std::string_view path); ///< "/a/b" -> "/a"; "/a" -> "/"; "/" -> "/"
std::string base_name(std::string_view path);   ///< "/a/b" -> "b"; "b" -> "b"; "/" -> ""
/// Returns `path` and the directories above it, from the top, without those that hold `there`: what is missing if the
/// nearest existing directory is `there`. "/a", "/a/b/c" -> "/a/b", "/a/b/c".
std::vector<std::string> paths_below(std::string_view there, std::string_view path);
std::size_t path_depth(std::string_view path);                            ///< components: "/a/b" -> 2; "/" -> 0
std::string join_path(std::string_view directory, std::string_view name); ///< an absolute `name` wins

} // namespace sharefs
