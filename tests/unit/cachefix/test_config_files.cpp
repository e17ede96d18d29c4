#include "cachefix/sanitize.hpp"
#include "given.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::cachefix;
using test::local_of;
using test::words;
using test::World;

TEST_CASE("requirement 12: a changed copy of a configuration file, or an override behind it") {
  World world;
  world.files["/job/a.json"] = R"({"cache_dir": "/share/x", "lr": 0.1})";
  const Sanitized copied = world.run(words("python run_clm.py a.json"));
  REQUIRE(copied.copies.size() == 1);
  CHECK(copied.argv[2] == copied.copies[0].path);
  CHECK(copied.copies[0].content == "{\n  \"lr\": 0.1\n}\n");
  world.files["/job/a.yaml"] = "cache_dir: /share/x\n";
  CHECK(world.run(words("llamafactory-cli train a.yaml")).argv.back() == "cache_dir=null");
}

TEST_CASE("requirement 13: contradictions are left and explained") {
  World world;
  world.files["/job/a.yaml"] = "cache_dir: /share/x\ndata_shared_file_system: true\n";
  world.files["/job/a.json"] = R"({"cache_dir": "/share/x", "data_shared_file_system": true})";
  world.files["/job/b.yaml"] = "cache_dir: /share/x\n";
  const std::string line = GENERATE(
      as<std::string>(), "llamafactory-cli train a.yaml", "llamafactory-cli train a.json",
      "llamafactory-cli train b.yaml data_shared_file_system=True", "llamafactory-cli train a.yaml cache_dir=/share/y",
      "python src/train.py --cache_dir /share/x --data_shared_file_system --stage sft --finetuning_type lora",
      "python src/train.py --cache_dir /share/x --data_shared_file_system yes --stage sft --finetuning_type lora");
  INFO(line);
  const Sanitized result = world.run(words(line));
  CHECK(result.argv == words(line));
  CHECK(result.changes().empty());
  CHECK(result.set.empty());
  REQUIRE(result.diagnoses.size() == 1);
  CHECK(result.diagnoses[0].code == "SF411");
  CHECK(result.diagnoses[0].hint.find("--local --cache_dir") != std::string::npos);
}

TEST_CASE("requirement 13: no contradiction, no complaint") {
  World world;
  world.files["/job/a.yaml"] = "cache_dir: /share/x\ndata_shared_file_system: true\n";
  world.files["/job/off.yaml"] = "cache_dir: /share/x\ndata_shared_file_system: false\n";
  world.files["/job/local.yaml"] = "cache_dir: /scratch/x\ndata_shared_file_system: true\n";
  CHECK(world.run(words("llamafactory-cli train off.yaml")).diagnoses.empty());
  CHECK(world.run(words("llamafactory-cli train a.yaml data_shared_file_system=false")).argv.back() ==
        "cache_dir=null");
  const Sanitized local = world.run(words("llamafactory-cli train local.yaml"));
  CHECK(local.diagnoses.empty());
  CHECK(local.argv == words("llamafactory-cli train local.yaml"));
}

TEST_CASE("requirement 13: on request both are changed, and models stay") {
  World world;
  world.files["/job/a.yaml"] = "cache_dir: /share/x\ndata_shared_file_system: true\n";
  Rules rules;
  rules.user.push_back({"", "--cache_dir", true, "--local"});
  const auto check = [&](const std::string& before, const std::string& after) {
    INFO(before);
    const Sanitized result = world.run(words(before), rules);
    CHECK(result.argv == words(after));
    CHECK(result.diagnoses.empty());
    CHECK(result.set.at("HF_DATASETS_CACHE") == local_of("/share/x"));
    CHECK(result.set.at("HF_HUB_CACHE") == "/share/x");
  };
  check("llamafactory-cli train a.yaml", "llamafactory-cli train a.yaml data_shared_file_system=false cache_dir=null");
  check("llamafactory-cli train a.yaml data_shared_file_system=true",
        "llamafactory-cli train a.yaml data_shared_file_system=false cache_dir=null");
  check("llamafactory-cli train a.yaml -- x.py",
        "llamafactory-cli train a.yaml data_shared_file_system=false cache_dir=null -- x.py");
  const std::string start = "python src/train.py --stage sft --finetuning_type lora ";
  check(start + "--data_shared_file_system --cache_dir /share/x", start + "--data_shared_file_system=false");
  check(start + "--data_shared_file_system True --cache_dir=/share/x", start + "--data_shared_file_system false");
}

TEST_CASE("a directory that may not be read is not one that does not answer") {
  World world;
  world.files["/job/a.yml"] = "dataset_prepared_path: /share/ready\n";
  world.unreadable["/share/ready"] = EACCES;
  CHECK(test::codes(world.run(test::words("axolotl train a.yml"))) == "SF423");
  world.unreadable["/share/ready"] = ETIMEDOUT;
  CHECK(test::codes(world.run(test::words("axolotl train a.yml"))) == "SF409");
}

TEST_CASE("requirement 13: a prepared dataset stays where it is, unless it is asked for") {
  World world;
  world.files["/job/a.yml"] = "dataset_prepared_path: /share/ready\n";
  world.directories["/share/ready"] = {"abc"};
  CHECK(world.run(words("axolotl train a.yml")).changes().empty());
  Rules rules;
  rules.user.push_back({"", "--dataset_prepared_path", true, "--local"});
  CHECK(world.run(words("axolotl train a.yml"), rules).argv.back() ==
        "--dataset-prepared-path=" + local_of("/share/ready"));
}
