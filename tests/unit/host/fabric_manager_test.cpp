#include "vfpass/host/fabric_manager.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "hosts/sysfs_tree.hpp"
#include "vfpass/error.hpp"

namespace vfpass::host {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

std::string listedGpu(unsigned module, const std::string& address) {
  return "{\"maxNumNvLinks\" : 18, \"numNvLinksAvailable\" : 18, \"nvlinkLineRateMBps\" : 26562, "
         "\"pciBusId\" : \"" +
         address + "\", \"physicalId\" : " + std::to_string(module) + ", \"uuid\" : \"\"}";
}

std::string listedPartition(unsigned id, bool active, const std::vector<std::string>& gpus) {
  std::string list;
  for (const std::string& gpu : gpus) {
    list += (list.empty() ? "" : ",\n") + gpu;
  }
  return "{\"gpuInfo\" : [" + list + "], \"isActive\" : " + (active ? "1" : "0") +
         ", \"numGpus\" : " + std::to_string(gpus.size()) +
         ", \"partitionId\" : " + std::to_string(id) + "}";
}

std::string partitionList(const std::vector<std::string>& partitions) {
  std::string list;
  for (const std::string& partition : partitions) {
    list += (list.empty() ? "" : ",\n") + partition;
  }
  return "{\n   \"maxNumPartitions\" : 15,\n   \"numPartitions\" : " +
         std::to_string(partitions.size()) + ",\n   \"partitionInfo\" : [\n" + list +
         "\n   ],\n   \"version\" : 16909068\n}\n";
}

const std::string unseen = "00000000:00:00.0";

std::string refusalOf(const std::string& output) {
  try {
    parsePartitions(output);
    return "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.remedy(), HasSubstr("FABRIC_MODE=1"));
    return error.what();
  }
}

TEST(FabricPartitions, AreReadFromTheList) {
  const std::string list = partitionList(
      {listedPartition(0, false, {listedGpu(1, "00000000:1B:00.0"), listedGpu(2, unseen)}),
       listedPartition(7, true, {listedGpu(2, "")})});
  const std::vector<FabricPartition> expected{
      {0, false, {{1, parsePciAddress("0000:1b:00.0")}, {2, std::nullopt}}},
      {7, true, {{2, std::nullopt}}}};
  EXPECT_EQ(parsePartitions(list), expected);
  EXPECT_EQ(parsePartitions("fmpm: libnvfm.so.1: no version information available\n" + list),
            expected);
  EXPECT_THAT(parsePartitions(partitionList({})), SizeIs(0));
}

// fmpm prints its errors instead of a list, and exits with the library's return value.
TEST(FabricPartitions, TheProgramsOwnMessageIsTheReason) {
  EXPECT_THAT(refusalOf("Failed to connect to Fabric Manager instance.\n"),
              HasSubstr("fmpm lists no partitions: Failed to connect to Fabric Manager instance."));
  EXPECT_THAT(refusalOf("Failed to get partition list. fmReturn: -8\n"),
              HasSubstr("fmReturn: -8 (FM_ST_NOT_CONFIGURED)"));
  EXPECT_THAT(refusalOf("Failed to get partition list. fmReturn: -99999999999999999999\n"),
              HasSubstr("fmReturn: -99999"));
  EXPECT_THAT(refusalOf(""), HasSubstr("it printed nothing"));
  EXPECT_EQ(refusalOf("\x1b[2J").find('\x1b'), std::string::npos);
}

TEST(FabricPartitions, IncompleteListsAreRefused) {
  EXPECT_THAT(refusalOf("{"), HasSubstr("invalid list of partitions"));
  EXPECT_THAT(refusalOf("{}"), HasSubstr("'partitionInfo'"));
  EXPECT_THAT(refusalOf("{\"partitionInfo\": 3}"), HasSubstr("'partitionInfo'"));
  EXPECT_THAT(refusalOf(partitionList({"{}"})), HasSubstr("partitionInfo[0].partitionId"));
  EXPECT_THAT(refusalOf(partitionList({listedPartition(0, false, {listedGpu(1, "bus 27")})})),
              HasSubstr("bus 27"));
  EXPECT_THAT(refusalOf(partitionList({listedPartition(0, false, {listedGpu(70000, unseen)})})),
              HasSubstr("physicalId"));
  EXPECT_THAT(refusalOf(partitionList({listedPartition(0, false, {})})), HasSubstr("numGpus"));
  std::string fewer = partitionList({listedPartition(0, false, {listedGpu(1, unseen)})});
  fewer.replace(fewer.find("\"numGpus\" : 1"), 13, "\"numGpus\" : 2");
  EXPECT_THAT(refusalOf(fewer), HasSubstr("another number of GPUs than are listed"));
  EXPECT_THAT(refusalOf("{" + std::string(100'000, '[')), HasSubstr("invalid list of partitions"));
}

TEST(FabricPartitions, ContradictoryListsAreRefused) {
  const std::string one = listedGpu(1, unseen);
  const std::string two = listedGpu(2, unseen);
  EXPECT_THAT(
      refusalOf(
          partitionList({listedPartition(0, true, {one, two}), listedPartition(8, true, {two})})),
      HasSubstr("partition 8 and partition 0 are both active and share the GPU with module ID 2"));
  EXPECT_THAT(
      refusalOf(partitionList({listedPartition(0, true, {one}), listedPartition(0, false, {two})})),
      HasSubstr("two partitions have the number 0"));
  EXPECT_THAT(refusalOf(partitionList({listedPartition(0, false, {one, one})})),
              HasSubstr("a GPU is listed twice"));
  const std::string address = "00000000:1B:00.0";
  EXPECT_THAT(refusalOf(partitionList({listedPartition(0, false, {listedGpu(1, address)}),
                                       listedPartition(1, false, {listedGpu(2, address)})})),
              HasSubstr("two GPUs at 0000:1b:00.0"));
  EXPECT_THAT(
      refusalOf(partitionList({listedPartition(0, false, {listedGpu(1, address)}),
                               listedPartition(1, false, {listedGpu(1, "00000000:43:00.0")})})),
      HasSubstr("two addresses for one GPU"));
}

/// A program that stands in for fmpm.
class StandInFmpm {
 public:
  explicit StandInFmpm(const std::string& script) {
    tree_.file("fmpm", "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(path(), std::filesystem::perms::owner_all);
  }
  [[nodiscard]] std::string path() const { return tree_.path() / "fmpm"; }

 private:
  hosts::SysfsTree tree_;
};

TEST(FabricManager, IsAskedThroughFmpm) {
  const StandInFmpm fmpm("[ \"$*\" = -l ] && cat <<END\n" +
                         partitionList({listedPartition(3, false, {listedGpu(1, unseen)})}) +
                         "END");
  EXPECT_THAT(readPartitions(fmpm.path(), 20s),
              ElementsAre(FabricPartition{3, false, {{1, std::nullopt}}}));
}

TEST(FabricManager, ThatHangsOrWritesWithoutEndIsNotWaitedFor) {
  EXPECT_THROW(readPartitions(StandInFmpm("exec sleep 1000").path(), 50ms), Error);
  EXPECT_THROW(readPartitions(StandInFmpm("exec yes").path(), 20s), Error);
  EXPECT_THROW(readPartitions("/nonexistent/fmpm", 20s), Error);
}

constexpr const char* standInScript = R"script(
state=${0%/*}
partition() {
  active=0; [ -e "$state/active-$1" ] && active=1
  printf '%s{"partitionId": %s, "isActive": %s,' "$2" "$1" $active
  printf ' "numGpus": %s, "gpuInfo": [%s]}' "$3" "$4"
}
gpu() { printf '{"physicalId": %s, "pciBusId": "", "uuid": ""}' "$1"; }
if [ "$1" = -l ]; then
  echo '{"partitionInfo": ['
  partition 0 "" 2 "$(gpu 1), $(gpu 2)"
  partition 7 , 1 "$(gpu 1)"
  echo ']}'
  exit
fi
echo "$*" >>"$state/calls"
case $(cat "$state/fault" 2>/dev/null) in
hang) exec sleep 1000 ;;
refuse) echo 'Failed to activate partition. fmReturn: -12'; exit 244 ;;
other) : >"$state/active-7"; exit ;;
esac
case $1 in
-a) : >"$state/active-$2" ;;
-d) rm "$state/active-$2" ;;
esac
)script";

/// Stands in for fmpm and a fabric manager with partitions 0 (modules 1 and 2) and 7 (module 1).
/// The file `fault` makes it fail.
class StandInManager {
 public:
  StandInManager() {
    tree_.file("fmpm", std::string("#!/bin/sh\n") + standInScript);
    std::filesystem::permissions(tree_.path() / "fmpm", std::filesystem::perms::owner_all);
  }
  void set(const std::vector<unsigned>& modules, bool active,
           std::chrono::milliseconds deadline = 20s) {
    setPartition(
        tree_.path() / "fmpm", {{}, modules, active}, [this] { ++activations_; }, deadline);
  }
  [[nodiscard]] bool isActive(unsigned id) const {
    return std::filesystem::exists(tree_.path() / ("active-" + std::to_string(id)));
  }
  [[nodiscard]] std::string calls() const { return tree_.content("calls"); }
  [[nodiscard]] int activations() const { return activations_; }
  void fails(const std::string& fault) const { tree_.file("fault", fault); }

 private:
  hosts::SysfsTree tree_;
  int activations_ = 0;
};

TEST(FabricManager, PartitionIsActivatedAndDeactivatedOnce) {
  StandInManager manager;
  manager.set({2, 1}, true);
  manager.set({1, 2}, true);
  EXPECT_TRUE(manager.isActive(0));
  manager.set({1}, false);
  EXPECT_TRUE(manager.isActive(0)) << "it holds another GPU, too";
  manager.set({1, 2}, false);
  manager.set({1, 2}, false);
  EXPECT_FALSE(manager.isActive(0));
  EXPECT_EQ(manager.calls(), "-a 0\n-d 0\n");
  EXPECT_EQ(manager.activations(), 1) << "the second one found it active";
}

TEST(FabricManager, NoOtherPartitionIsTouched) {
  StandInManager manager;
  manager.set({1}, true);
  EXPECT_THROW(manager.set({1, 2}, true), Error);
  EXPECT_THROW(manager.set({2}, true), Error);
  manager.set({1, 2}, false);
  manager.set({2}, false);
  EXPECT_EQ(manager.calls(), "-a 7\n");
  EXPECT_TRUE(manager.isActive(7));
}

// Only a partition that a start has activated is deactivated: it must not stay active unnoticed.
TEST(FabricManager, AMissingClientIsReported) {
  const auto fails = [](bool active) {
    try {
      setPartition(
          "", {{{0, 0x3a, 0, 0}}, {1}, active}, [] {}, 20s);
    } catch (const Error& error) {
      return std::string(error.what()) + "; " + error.remedy();
    }
    return std::string("accepted");
  };
  EXPECT_THAT(fails(true), HasSubstr("cannot activate the partition"));
  EXPECT_THAT(fails(false), HasSubstr("cannot deactivate the partition of 0000:3a:00.0"));
  EXPECT_THAT(fails(false), HasSubstr("`vfpass recover --abandon NUMBER`"));
}

TEST(FabricManager, ItsFaultsAreReported) {
  StandInManager manager;
  manager.fails("refuse");
  try {
    manager.set({1}, true);
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("had no effect: Failed to activate partition. fmReturn: -12 "
                          "(FM_ST_RESOURCE_IN_USE)"));
  }
  manager.fails("hang");
  EXPECT_THROW(manager.set({1}, true, 3s), TimeoutError);
  EXPECT_FALSE(manager.isActive(7));
}

// Whether this request has activated it or somebody else, nobody can tell: it stays active.
TEST(FabricManager, PartitionThatIsActiveInsteadIsNamed) {
  StandInManager manager;
  manager.fails("other");
  try {
    manager.set({1, 2}, true);
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("partition 7, which has GPUs of it, is active now"));
    EXPECT_THAT(error.remedy(), HasSubstr("fmpm -d 7"));
  }
  EXPECT_TRUE(manager.isActive(7));
}

TEST(FabricManager, ClientIsFoundAtItsUsualPlaces) {
  const hosts::SysfsTree tree;
  EXPECT_EQ(findFmpm(Root(tree.path())), "");
  tree.file("usr/bin/fmpm", "");
  EXPECT_EQ(findFmpm(Root(tree.path())), "/usr/bin/fmpm");
  tree.file("usr/local/sbin/fmpm", "");
  EXPECT_EQ(findFmpm(Root(tree.path())), "/usr/local/sbin/fmpm");
}

TEST(FabricManager, VersionIsReadFromItsOutput) {
  EXPECT_EQ(fabricManagerVersion("\n\tFabric Manager version is : 580.95.05\n\n"), "580.95.05");
  EXPECT_EQ(fabricManagerVersion("Fabric Manager version is 580.95.05-1\n"), "580.95.05");
  EXPECT_EQ(fabricManagerVersion("Fabric Manager version is : \x1b[31m"), "");
  EXPECT_EQ(fabricManagerVersion("nv-fabricmanager: not found"), "");
}

}  // namespace
}  // namespace vfpass::host
