#include "conda/records.hpp"

#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::conda;

namespace {

const std::string k_one(64, '1'), k_two(64, '2'), k_three(64, '3');

std::string with_path(const std::string& path) {
  return R"({"name": "x", "files": [], "paths_data": {"paths": [{"_path": ")" + path + "\"}]}}";
}

} // namespace

TEST_CASE("a record of a distribution of Python", "[records]") {
  const auto record = parse_distribution("x/__init__.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\r\n"
                                         "x/__pycache__/__init__.cpython-311.pyc,,\n"
                                         "x/short,sha256=47DE,9\nx/other,md5=1,2\nno row\n",
                                         "lib/python3.11/site-packages");
  REQUIRE(record);
  REQUIRE(record->files.size() == 4);
  CHECK(record->files[0].path == "lib/python3.11/site-packages/x/__init__.py");
  CHECK(record->files[0].sha256 == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"); // of nothing
  CHECK(record->files[1].sha256.empty());
  CHECK(record->files[2].sha256.empty());
  CHECK(record->files[3].sha256.empty());
  CHECK_FALSE(parse_distribution("../../../../x,,\n", "lib/python3.11/site-packages"));
}

TEST_CASE("a record of conda", "[records]") {
  const auto record = parse_record(R"({"name": "python", "version": "3.11", "build": "0", "noarch": "python",
    "extracted_package_dir": "/p/python", "files": ["bin/x", "lib/y.pyc", "bin/tool"],
    "paths_data": {"paths_version": 1, "paths": [
      {"_path": "bin/x", "path_type": "hardlink", "sha256": ")" +
                                   k_one + R"(", "sha256_in_prefix": ")" + k_two +
                                   R"(", "file_mode": "binary", "prefix_placeholder": "/build/p", "size_in_bytes": 7},
      {"_path": "bin/tool", "path_type": "unix_python_entry_point"}]}})");
  REQUIRE(record);
  CHECK(record->name == "python");
  CHECK(record->python_noarch);
  CHECK(record->package == "/p/python");
  REQUIRE(record->files.size() == 3);
  const auto& file = record->files[0];
  CHECK((file.path == "bin/x" && file.patched() && file.installed() == k_two));
  CHECK((file.mode == FileMode::binary && file.placeholder == "/build/p"));
  CHECK(record->files[1].type == PathType::entry_point);
  CHECK((record->files[2].path == "lib/y.pyc" && record->files[2].type == PathType::pyc));
}

TEST_CASE("conda's record of a package for any Python names its files as the package does", "[records]") {
  const auto package_paths = R"([{"_path": "site-packages/tool/a.py", "sha256": ")" + k_one +
                             R"(", "file_mode": "text", "prefix_placeholder": "/build/p"},
    {"_path": "python-scripts/run", "sha256": ")" +
                             k_two + R"("}, {"_path": "share/site-packages/x", "sha256": ")" + k_three + R"("}])";
  const std::string files = R"("share/site-packages/x", "lib/python3.11/site-packages/tool/a.py", "bin/run")";
  auto by_conda = parse_record(R"({"name": "tool", "noarch": "python", "files": [)" + files +
                               R"(], "paths_data": {"paths": )" + package_paths + "}}");
  REQUIRE(by_conda);
  REQUIRE(by_conda->files.size() == 3);
  CHECK(by_conda->files[0].path == "lib/python3.11/site-packages/tool/a.py");
  CHECK((by_conda->files[0].sha256 == k_one && by_conda->files[0].placeholder == "/build/p"));
  CHECK((by_conda->files[1].path == "bin/run" && by_conda->files[1].sha256 == k_two));
  CHECK((by_conda->files[2].path == "share/site-packages/x" && by_conda->files[2].sha256 == k_three));

  auto by_libmamba = parse_record(R"({"name": "tool", "noarch": "python", "files": [)" + files +
                                  R"(], "paths_data": {"paths": [
    {"_path": "lib/python3.11/site-packages/tool/a.py", "sha256": ")" +
                                  k_one + R"("}]}})");
  REQUIRE(by_libmamba);
  add_placeholders(*by_libmamba, R"({"paths": )" + package_paths + "}");
  CHECK(by_libmamba->files[0].placeholder == "/build/p");

  auto other = parse_record(R"({"name": "x", "files": [], "paths_data": {"paths": )" + package_paths + "}}");
  REQUIRE(other); // for one architecture: the names are what they are
  CHECK(other->files[0].path == "site-packages/tool/a.py");
}

TEST_CASE("a record of libmamba gets its placeholders from the package in the cache", "[records]") {
  auto record = parse_record(R"({"name": "x", "files": ["a", "b"], "paths_data": {"paths": [
    {"_path": "a", "sha256": ")" +
                             k_one + R"(", "sha256_in_prefix": ")" + k_two + R"("},
    {"_path": "b", "sha256": ")" +
                             k_one + R"(", "sha256_in_prefix": ")" + k_two + R"("}]}})");
  REQUIRE(record);
  add_placeholders(*record, R"({"paths": [
    {"_path": "a", "sha256": ")" +
                                k_one + R"(", "file_mode": "text", "prefix_placeholder": "/build/p"},
    {"_path": "b", "sha256": ")" +
                                k_three + R"(", "file_mode": "text", "prefix_placeholder": "/build/p"}]})");
  CHECK((record->files[0].mode == FileMode::text && record->files[0].placeholder == "/build/p"));
  CHECK_FALSE(record->files[1].mode); // of another build
  for (const auto* hostile : {"", "[", "[]", "{}", R"({"paths": 1})", R"({"paths": [1, null, {"_path": {}}]})"})
    add_placeholders(*record, hostile);
}

TEST_CASE("a hostile record is refused", "[records]") {
  const auto deep = R"({"name": "x", "files": )" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  for (const auto& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("null"), std::string("\xff\xfe"), deep,
        std::string(R"({"files": []})"), std::string(R"({"name": 1, "files": []})"), std::string(R"({"name": "x"})"),
        std::string(R"({"name": "x", "files": [1]})"), std::string(R"({"name": "x", "files": ["/etc/passwd"]})"),
        std::string(R"({"name": "x", "paths_data": {"paths": [1]}})")})
    CHECK_FALSE(parse_record(text));
  for (const auto* path :
       {"", "/etc/passwd", "../x", "a/../../x", "..", "a/..", ".", "./a", "a//b", "a/", "a\\u0000b"}) {
    INFO(path);
    CHECK_FALSE(parse_record(with_path(path)));
  }
  CHECK_FALSE(parse_record(with_path(std::string(5000, 'a'))));
  CHECK(parse_record(with_path("a/..b/c")));
  CHECK_FALSE(parse_record(std::string(k_record_limit + 1, ' ')));
  std::string many; // small, and a hundred times as much in memory
  for (std::size_t i = 0; i <= k_most_recorded; ++i)
    many += "1,";
  CHECK(parse_record(R"({"name": "x", "files": [)" + many + "1]}").error().message == "names more than 300000 files");
  std::string values;
  for (std::size_t i = 0; i <= 10 * k_most_recorded / 4; ++i)
    values += "[],[],";
  CHECK(parse_record(R"({"name": "x", "files": [], "y": [)" + values + "1]}").error().message ==
        "holds more than 3000000 values");
}

TEST_CASE("a record with values of other kinds is read without them", "[records]") {
  const auto record = parse_record(R"({"name": "x", "files": null, "paths_data": {"paths": [
    {"_path": "a", "sha256": 7, "sha256_in_prefix": "short", "file_mode": "text", "prefix_placeholder": "relative"},
    {"_path": "a", "path_type": "hardlink"}]}})");
  REQUIRE(record);
  REQUIRE(record->files.size() == 1);
  CHECK((record->files[0].installed().empty() && !record->files[0].mode));
}

TEST_CASE("requirement 9: checksums are corrected in place", "[records]") {
  const auto text = [](const std::string& a, const std::string& b, const std::string& entry_point) {
    return R"({"name": "x", "sha256": ")" + k_one + R"(", "files": ["\"sha256\": "],"paths_data" : {"paths": [
      {"_path": "a", "sha256": ")" +
           k_one + R"(", "sha256_in_prefix" : ")" + a + R"("},
      {"sha256_in_prefix": ")" +
           b + R"(", "_path": "b", "sha256": ")" + k_one + R"("},
      {"_path": "t", "path_type": "unix_python_entry_point", "sha256": ")" +
           entry_point + R"("}]}})";
  };
  const std::string four(64, '4'), five(64, '5');
  const auto changed = [](const std::string& json, const std::vector<NewChecksum>& changes) {
    const auto record = parse_record(json);
    const auto edits = record ? checksum_edits(*record, json, changes) : std::nullopt;
    return edits ? apply_edits(json, *edits) : std::nullopt;
  };
  const std::vector<NewChecksum> two{{"a", k_two, four}, {"t", k_three, five}};
  CHECK(changed(text(k_two, k_one, k_three), two) == text(four, k_one, five));
  // Other letters are the same digits, and have to be found.
  const std::string letters(64, 'c');
  const std::vector<NewChecksum> lettered{{"a", letters, four}};
  CHECK(changed(text(std::string(64, 'C'), k_one, k_three), lettered) == text(four, k_one, k_three));
  CHECK_FALSE(changed(text("\\u0063" + std::string(63, 'c'), k_one, k_three), lettered));
  CHECK(changed(text(letters, k_one, "\\u00e4"), lettered) == text(four, k_one, "\\u00e4"));
  // A checksum that another file has too, which stays: nothing is done. Nor where two would become different ones.
  CHECK_FALSE(changed(text(k_two, k_one, k_three), {{"b", k_one, four}}));
  CHECK_FALSE(changed(text(k_two, k_one, k_three), {{"a", four, five}}));
  CHECK_FALSE(changed(text(k_two, k_one, k_two), {{"a", k_two, four}, {"t", k_two, five}}));
  CHECK(changed(text(k_two, k_one, k_two), {{"a", k_two, four}, {"t", k_two, four}}) == text(four, k_one, four));
}
