#include "cachefix/launch.hpp"
#include "given.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::cachefix;
using test::words;
using test::World;

using Hosts = std::vector<std::string>;

TEST_CASE("requirement 9: hostfiles of DeepSpeed, Open MPI and MPICH name their hosts") {
  CHECK(parse_hostfile("# ours\nworker-0 slots=8\n\nworker-1 slots=8 # old\n  worker-0 slots=8\n") ==
        Hosts{"worker-0", "worker-1"});
  CHECK(parse_hostfile("a:4\nb:4\n") == Hosts{"a", "b"});
  CHECK(parse_host_list("a:4,b,,a") == Hosts{"a", "b"});
  CHECK(filter_hosts({"a", "b", "c"}, "a@c:0,2", "") == Hosts{"a", "c"});
  CHECK(filter_hosts({"a", "b", "c"}, "", "b@c:0") == Hosts{"a", "c"});
}

TEST_CASE("requirement 9: the hosts of a launch are known when caches move, and only then") {
  World world;
  world.files["/job/hostfile"] = "n1 slots=8\nn2 slots=8\nn3 slots=8\n";
  CHECK(world.run(words("deepspeed --hostfile hostfile run_clm.py --cache_dir /share/x")).hosts ==
        Hosts{"n1", "n2", "n3"});
  CHECK(world.run(words("deepspeed -H hostfile -e n2 run_clm.py --cache_dir /share/x")).hosts == Hosts{"n1", "n3"});
  CHECK(world.run(words("mpirun.openmpi -H n1:8,n2:8 python run_clm.py --cache_dir /share/x")).hosts ==
        Hosts{"n1", "n2"});
  CHECK(world.run(words("deepspeed --hostfile hostfile run_clm.py --cache_dir /scratch/x")).hosts.empty());
  CHECK(world.run(words("deepspeed --hostfile missing run_clm.py --cache_dir /share/x")).hosts.empty());
}
