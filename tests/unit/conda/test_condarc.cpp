#include "conda/condarc.hpp"

#include "support/catch.hpp"

#include <fmt/format.h>

using namespace sharefs;
using namespace sharefs::conda;

namespace {

const std::string k_own = "/home/alice/miniconda3/envs";
const std::string k_store = "/data/share/conda";
const std::string k_line =
    "envs_dirs: [/home/alice/miniconda3/envs, /data/share/conda] # by sharefs conda link --condarc";

std::string linked(const std::string& text) {
  const auto changed = with_envs_directory(text, k_own, k_store);
  return changed ? *changed : "refused: " + changed.error().message;
}
std::string unlinked(const std::string& text) {
  const auto changed = without_envs_directory(text, k_store);
  return changed ? *changed : "refused: " + changed.error().message;
}

} // namespace

TEST_CASE("requirement 13: one entry of .condarc is added, and taken away to the byte", "[conda]") {
  struct Row {
    std::string before, after;
  };
  const std::vector<Row> rows{
      // no `envs_dirs`: one line
      {"", k_line + "\n"},
      {"channels:\n  - conda-forge\n", "channels:\n  - conda-forge\n" + k_line + "\n"},
      {"channels:\n- conda-forge # mine\n\n# end", "channels:\n- conda-forge # mine\n\n# end\n" + k_line},
      {"---\nauto_update_conda: no\n", "---\nauto_update_conda: no\n" + k_line + "\n"},
      {"# envs_dirs: [/x]\n", "# envs_dirs: [/x]\n" + k_line + "\n"},
      {"pkgs_dirs:\n  - /envs_dirs:\nssl_verify: \"a # b\"\n",
       "pkgs_dirs:\n  - /envs_dirs:\nssl_verify: \"a # b\"\n" + k_line + "\n"},
      // a list in lines: behind the first
      {"envs_dirs:\n  - /mine # first\n  - /more\nchannels: [a]\n",
       "envs_dirs:\n  - /mine # first\n  - /data/share/conda\n  - /more\nchannels: [a]\n"},
      {"envs_dirs:\n# why\n\n- ~/envs", "envs_dirs:\n# why\n\n- ~/envs\n- /data/share/conda"},
      {"envs_dirs :\n    - '/a b'\nx: {}\n", "envs_dirs :\n    - '/a b'\n    - /data/share/conda\nx: {}\n"},
      // a list in brackets: behind the first
      {"envs_dirs: [/mine]\n", "envs_dirs: [/mine, /data/share/conda]\n"},
      {"envs_dirs: [ \"/a b\" , $HOME/x ] # mine\nchannels: []\n",
       "envs_dirs: [ \"/a b\", /data/share/conda , $HOME/x ] # mine\nchannels: []\n"},
  };
  for (const auto& [before, after] : rows) {
    CAPTURE(before);
    CHECK(linked(before) == after);
    CHECK(linked(after) == after);
    CHECK(unlinked(after) == before);
    CHECK(unlinked(before) == before);
  }
}

TEST_CASE("requirement 13: what a user has written is left as it is", "[conda]") {
  // Named already, wherever.
  for (const auto* text : {"envs_dirs: [/data/share/conda]\n", "envs_dirs:\n  - /data/share/conda/\n  - /mine\n",
                           "envs_dirs:\n  - /mine\n  - \"/data/share/conda\"\n"})
    CHECK(linked(text) == text);
  CHECK(unlinked("envs_dirs: [/data/share/conda]\nx: 1\n") == "x: 1\n");
  CHECK(unlinked("x: 1\nenvs_dirs:\n  - /data/share/conda\n") == "x: 1\n");
  CHECK(unlinked("envs_dirs: [/data/share/conda, /mine]\n") == "envs_dirs: [/mine]\n");
  CHECK(unlinked("envs_dirs: [/home/alice/miniconda3/envs, /data/share/conda] # mine\n") ==
        "envs_dirs: [/home/alice/miniconda3/envs] # mine\n");
  CHECK(unlinked("envs_dirs: [/data/share/conda-old]\n") == "envs_dirs: [/data/share/conda-old]\n");
}

TEST_CASE("requirement 13: a .condarc that cannot be changed safely is refused with its line", "[conda]") {
  struct Row {
    std::string text, why;
  };
  const std::vector<Row> rows{
      {"x: 1\nenvs_dirs: [/a,\n  /b]\n", "line 2: `envs_dirs` is a list in brackets over several lines"},
      {"envs_dirs: &mine [/a]\n", "line 1: `envs_dirs` is no list of directories"},
      {"envs_dirs: /a\n", "line 1: `envs_dirs` is no list of directories"},
      {"envs_dirs: [/a, *more]\n", "line 1: an element of `envs_dirs` is no plain path"},
      {"envs_dirs: [\"/a, b\"]\n", "line 1: an element of `envs_dirs` is no plain path"},
      {"envs_dirs:\n  - &a /a\n", "line 2: an element of `envs_dirs` is no plain path"},
      {"envs_dirs:\n  - \"/a\\x20b\"\n", "line 2: an element of `envs_dirs` is no plain path"},
      {"envs_dirs:\n  - /a\n    /b\n", "line 3: `envs_dirs` holds something else than a list of directories"},
      {"envs_dirs:\n  - /a\n   - /b\n", "line 3: `envs_dirs` holds something else than a list of directories"},
      {"envs_dirs:\n", "line 1: `envs_dirs` is empty"},
      {"envs_dirs: [] # none\n", "line 1: `envs_dirs` is empty"},
      {"envs_dirs: [/a]\nenvs_dirs: [/b]\n", "line 2: `envs_dirs` stands on line 1 already"},
      {"envs_path: [/a]\n", "line 1: `envs_path` is conda's other name of `envs_dirs`, which mamba does not know"},
      {"- a\n- b\n", "line 1: it is a list, not keys with values"},
      {"{envs_dirs: [/a]}\n", "line 1: it does not begin with `KEY:`"},
      {"just words\n", "line 1: it does not begin with `KEY:`"},
      {"<<: *base\n", "line 1: it does not begin with `KEY:`"},
      {"\"envs_dirs\": [/a]\n", "line 1: it does not begin with `KEY:`"},
      {"  channels: []\n", "line 1: keys that are indented are not changed"},
      {"x: 1\n---\ny: 2\n", "line 2: it does not begin with `KEY:`"},
      {"x: 1\n...\n", "line 2: it does not begin with `KEY:`"},
      {"x: \"a\nenvs_dirs: [b]\"\n", "line 1: a quoted text over several lines"},
      {"x: [a,\nb]\n", "line 2: it does not begin with `KEY:`"},
      {std::string("x: 1\0\n", 6), "it is no text"},
      {"x: \xff\n", "it is no text"},
  };
  for (const auto& [text, why] : rows) {
    CAPTURE(text);
    CHECK(linked(text) == "refused: " + why);
    CHECK(unlinked(text) == text); // the store is not named: nothing is to be done
    if (why.starts_with("line"))
      CHECK(unlinked(text + "# /data/share/conda\n").starts_with("refused: line"));
  }
  // conda expands variables in it.
  CHECK_FALSE(with_envs_directory("", k_own, "/data/$HOME/conda"));
  CHECK(*with_envs_directory("", "/a b/envs", k_store) ==
        "envs_dirs: [\"/a b/envs\", /data/share/conda] # by sharefs conda link --condarc\n");
}

TEST_CASE("CONDA_ENVS_PATH and CONDA_ENVS_DIRS in startup files", "[conda]") {
  const auto found = envs_variables("/f", "# export CONDA_ENVS_PATH=/no\nexport CONDA_ENVS_PATH=/a:/b\n"
                                          "  CONDA_ENVS_DIRS=/c\nsetenv CONDA_ENVS_DIRS /d\n"
                                          "CONDA_ENVS_DIRSX=/e\necho $CONDA_ENVS_DIRS\n");
  CHECK(found == std::vector<EnvsVariable>{
                     {"CONDA_ENVS_PATH", "/f:2"}, {"CONDA_ENVS_DIRS", "/f:3"}, {"CONDA_ENVS_DIRS", "/f:4"}});
}
