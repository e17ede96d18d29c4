#pragma once
// Names out of texts that leave this host: what is secret always, names of hosts, users and directories on wish.
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace sharefs::cli {

/// The values of words like `password=` and `token:`, of `user:password@` in addresses, and private keys are `*****`.
std::string without_secrets(const std::string& text);

/// Other names for those that texts have: words (letters, digits and `_`) of paths outside of the system's own
/// directories, and of what is given. What stands in sharefs' own pages, and numbers, stay: they name nobody.
class OtherNames {
 public:
  OtherNames();
  void add_paths_of(std::string_view text); ///< every word between slashes in it
  void add(std::string_view name);          ///< the words of a host's or user's name
  /// Its words stay, although they were added. False: there was none.
  bool keep_words_of(std::string_view text);
  [[nodiscard]] std::string apply(std::string_view text) const;

 private:
  void add_word(std::string_view word);
  std::map<std::string, std::string, std::less<>> m_names; ///< empty: it stays
};

} // namespace sharefs::cli
