#include "vfpass/config/configuration.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support.hpp"
#include "vfpass/error.hpp"

namespace vfpass::config {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr unsigned otherUser = 54321;

std::string mappingFor(const std::string& vm, const std::string& more = "") {
  return "version: 1\nvm: " + vm + "\nvfs: [{name: rail0, pf: {netdev: ens1}" + more + "}]\n";
}

std::vector<std::string> loadOne(const fs::path& file) {
  const CheckedFile checked = loadFile(file);
  EXPECT_FALSE(checked.isHostPolicy);
  EXPECT_EQ(checked.mappings.empty(), !checked.problems.empty());
  return lines(checked.problems);
}

TEST(LoadConfiguration, MissingDirectoriesCountAsEmpty) {
  const TemporaryFolder folder;
  EXPECT_THAT(loadConfiguration(folder.path() / "none").problems, IsEmpty());
  const Configuration configuration = loadConfiguration(folder.path());
  EXPECT_THAT(configuration.problems, IsEmpty());
  EXPECT_THAT(configuration.mappings, IsEmpty());
}

TEST(LoadConfiguration, ReadsMappingsSortedByNameAndHostPolicy) {
  const TemporaryFolder folder;
  folder.write("vms/b.yaml", mappingFor("vm-b"));
  folder.write("vms/a.yaml", mappingFor("vm-a"));
  folder.write("vms/.hidden.yaml", "nonsense: [");
  folder.write("vms/a.yaml~", "nonsense: [");
  folder.write("host.yaml", "version: 1\npfs: [{pf: {rdma: mlx5_0}, virtual-function-count: 4}]\n");
  const Configuration configuration = loadConfiguration(folder.path());
  EXPECT_THAT(lines(configuration.problems), IsEmpty());
  ASSERT_THAT(configuration.mappings, SizeIs(2));
  EXPECT_EQ(configuration.mappings[0].vm, "vm-a");
  ASSERT_THAT(configuration.host.pfs, SizeIs(1));
  EXPECT_EQ(configuration.host.pfs[0].vfCount, 4U);
  EXPECT_FALSE(configuration.host.pfs[0].probeVfs);
}

TEST(LoadConfiguration, ReadsConsentToDisruptionPerPf) {
  const TemporaryFolder folder;
  folder.write("host.yaml",
               "version: 1\npfs:\n  - {pf: {rdma: mlx5_0}, allow-disruption: true}\n"
               "  - {pf: {rdma: mlx5_1}}\n");
  const Configuration configuration = loadConfiguration(folder.path());
  EXPECT_THAT(lines(configuration.problems), IsEmpty());
  ASSERT_THAT(configuration.host.pfs, SizeIs(2));
  EXPECT_TRUE(configuration.host.pfs[0].allowDisruption);
  EXPECT_FALSE(configuration.host.pfs[1].allowDisruption);
}

TEST(LoadConfiguration, ChecksTheMemoryOfGpusOnlyIfASoundFileSaysSo) {
  const TemporaryFolder folder;
  const auto isChecked = [&](const std::string& lines) {
    folder.write("host.yaml", "version: 1\n" + lines);
    return loadConfiguration(folder.path()).host.gpuMemoryCheck;
  };
  EXPECT_FALSE(isChecked("pfs: []\n"));
  EXPECT_FALSE(isChecked("gpu-memory-check: false\n"));
  EXPECT_TRUE(isChecked("gpu-memory-check: true\n"));
  EXPECT_FALSE(isChecked("gpu-memory-check: true\nunknown: 1\n"));
  EXPECT_FALSE(isChecked("gpu-memory-check: maybe\n"));
  folder.write("other.yaml", "version: 1\ngpu-memory-check: true\n");
  EXPECT_TRUE(loadFile(folder.path() / "other.yaml").isHostPolicy);
}

TEST(LoadConfiguration, OmitsInvalidMappingsAndReportsProblemsOfEveryFile) {
  const TemporaryFolder folder;
  folder.write("vms/a.yaml", mappingFor("vm-a"));
  folder.write("vms/b.yaml", "version: 2\nvm: b\n");
  folder.write("vms/c.yml", mappingFor("c"));
  folder.write("host.yaml", "version: 2\n");
  const Configuration configuration = loadConfiguration(folder.path());
  EXPECT_THAT(configuration.mappings, SizeIs(1));
  EXPECT_THAT(lines(configuration.problems),
              ElementsAre(HasSubstr("host.yaml:1:10: expected 1"),
                          HasSubstr("b.yaml:1:1: `vfs` is missing"),
                          HasSubstr("b.yaml:1:10: expected 1"), HasSubstr("c.yml:1:1: ")));
}

TEST(LoadConfiguration, FindsFaultyFileByItsVmOrByItsName) {
  const TemporaryFolder folder;
  folder.write("vms/a.yaml", "version: 2\nvm: by-key\n");
  folder.write("vms/b.yaml", "version: 1\nvm: 'by-line' # comment\nvfs: [\n");
  folder.write("vms/c.yml", mappingFor("hidden"));
  folder.write("vms/d.yaml", mappingFor("sound"));
  const Configuration configuration = loadConfiguration(folder.path());
  const auto fileOf = [&](const std::string& vm) {
    const FaultyFile* found = findFaulty(configuration, vm, vm);
    return found == nullptr ? "" : fs::path(found->file).filename().string();
  };
  EXPECT_EQ(fileOf("by-key"), "a.yaml");
  EXPECT_EQ(fileOf("by-line"), "b.yaml");
  EXPECT_EQ(fileOf("c"), "c.yml");
  EXPECT_EQ(fileOf("a"), "") << "its vm: is known";
  EXPECT_EQ(fileOf("sound"), "");
  EXPECT_EQ(fileOf("d"), "");
}

TEST(FileTrust, RefusesSymlinksDirectoriesAndPipes) {
  const TemporaryFolder folder;
  const fs::path file = folder.write("real.yaml", mappingFor("a"));
  fs::create_symlink(file, folder.path() / "link.yaml");
  fs::create_directory(folder.path() / "folder.yaml");
  ASSERT_EQ(::mkfifo((folder.path() / "pipe.yaml").c_str(), 0600), 0);
  EXPECT_THAT(loadOne(file), IsEmpty());
  EXPECT_THAT(loadOne(folder.path() / "link.yaml"), ElementsAre(HasSubstr("symbolic link")));
  EXPECT_THAT(loadOne(folder.path() / "folder.yaml"), ElementsAre(HasSubstr("regular file")));
  EXPECT_THAT(loadOne(folder.path() / "pipe.yaml"), ElementsAre(HasSubstr("regular file")));
  EXPECT_THAT(loadOne(folder.path() / "none.yaml"), ElementsAre(HasSubstr("(ENOENT)")));
}

TEST(FileTrust, RefusesFilesWritableByOthers) {
  const TemporaryFolder folder;
  const fs::path file = folder.write("a.yaml", mappingFor("a"));
  ::chmod(file.c_str(), 0646);
  EXPECT_THAT(loadOne(file), ElementsAre(HasSubstr("chmod o-w ")));
  ::chmod(file.c_str(), 0664);
  if (::getegid() == 0) {
    EXPECT_THAT(loadOne(file), IsEmpty());
    ASSERT_EQ(::chown(file.c_str(), 0, otherUser), 0);
  }
  EXPECT_THAT(loadOne(file), ElementsAre(HasSubstr("chmod g-w ")));
}

TEST(FileTrust, RefusesFilesOfOtherOwners) {
  const TemporaryFolder folder;
  const fs::path file = folder.write("a.yaml", mappingFor("a"));
  if (::chown(file.c_str(), otherUser, 0) == 0) {  // only root can change the owner
    EXPECT_THAT(loadOne(file), ElementsAre(HasSubstr("chown root ")));
  } else {
    EXPECT_NE(::geteuid(), 0U);
  }
}

TEST(FileTrust, RefusesDirectoriesWritableByOthers) {
  const TemporaryFolder folder;
  folder.write("vms/a.yaml", mappingFor("a"));
  ::chmod((folder.path() / "vms").c_str(), 0777);
  const Configuration configuration = loadConfiguration(folder.path());
  EXPECT_THAT(configuration.mappings, IsEmpty());
  EXPECT_THAT(lines(configuration.problems), ElementsAre(HasSubstr("chmod o-w ")));
}

TEST(FileTrust, RefusesFilesLargerThanOneMebibyte) {
  const TemporaryFolder folder;
  std::string text = mappingFor("a");
  text.resize((1U << 20U) + 1, '\n');
  EXPECT_THAT(loadOne(folder.write("a.yaml", text)), ElementsAre(HasSubstr("at most 1 MiB")));
  text.resize(1U << 20U);
  EXPECT_THAT(loadOne(folder.write("a.yaml", text)), IsEmpty());
}

std::vector<std::string> crossProblems(const std::string& one, const std::string& other) {
  const TemporaryFolder folder;
  folder.write("vms/a.yaml", one);
  folder.write("vms/b.yaml", other);
  const Configuration configuration = loadConfiguration(folder.path());
  EXPECT_THAT(lines(configuration.problems), IsEmpty());
  return lines(crossCheck(configuration.mappings));
}

TEST(CrossCheck, AcceptsMappingsThatShareNothing) {
  EXPECT_THAT(crossProblems(mappingFor("a", ", index: 0"), mappingFor("b", ", index: 1")),
              IsEmpty());
  EXPECT_THAT(crossProblems(mappingFor("a"), mappingFor("b")), IsEmpty());
}

TEST(CrossCheck, NamesBothPlaces) {
  const std::string mac = ", mac: 52:54:00:ab:cd:ef";
  const auto problems = crossProblems(mappingFor("a", mac), mappingFor("b", mac));
  ASSERT_THAT(problems, SizeIs(1));
  EXPECT_THAT(problems[0], HasSubstr("b.yaml:3:7: MAC address 52:54:00:ab:cd:ef already belongs to "
                                     "rail0 of a ("));
  EXPECT_THAT(problems[0], HasSubstr("a.yaml:3:7)"));
}

TEST(CrossCheck, FindsSharedVfGuidGpuAndVm) {
  EXPECT_THAT(crossProblems(mappingFor("a", ", index: 2"), mappingFor("b", ", index: 2")),
              ElementsAre(HasSubstr("VF 2 of PF netdev ens1 already")));
  EXPECT_THAT(crossProblems(mappingFor("a", ", infiniband: {node-guid: \"0x02000000000000aa\"}"),
                            mappingFor("b", ", infiniband: {port-guid: 0200:0000:0000:00AA}")),
              ElementsAre(HasSubstr("GUID 02:00:00:00:00:00:00:aa already")));
  const std::string gpu = "gpus: [{name: g, pci: \"3a:00.0\"}]\n";
  EXPECT_THAT(crossProblems(mappingFor("a") + gpu, mappingFor("b") + gpu),
              ElementsAre(HasSubstr("PCI function 0000:3a:00.0 already belongs to g of a")));
  const auto module = [](const std::string& pci) {
    return "gpus: [{name: g, pci: \"" + pci + "\", nvlink-module: 5}]\n";
  };
  EXPECT_THAT(
      crossProblems(mappingFor("a") + module("3a:00.0"), mappingFor("b") + module("3b:00.0")),
      ElementsAre(HasSubstr("NVLink module ID 5 already belongs to g of a")));
  EXPECT_THAT(crossProblems(mappingFor("4dea22b3-1d52-d8f3-2516-782e98ab3fa0"),
                            mappingFor("4DEA22B3-1D52-D8F3-2516-782E98AB3FA0")),
              ElementsAre(HasSubstr("already has a mapping")));
}

Configuration configurationOf(const std::vector<std::string>& vms) {
  Configuration configuration;
  for (const auto& vm : vms) {
    Mapping mapping;
    mapping.vm = vm;
    mapping.vmPlace = {vm + ".yaml", 2, 5};
    configuration.mappings.push_back(mapping);
  }
  return configuration;
}

TEST(FindMapping, MatchesNameOrUuid) {
  const std::string uuid = "4dea22b3-1d52-d8f3-2516-782e98ab3fa0";
  const Configuration configuration =
      configurationOf({"train0", "4DEA22B31D52D8F32516782E98AB3FA0"});
  EXPECT_EQ(findMapping(configuration, "train0", ""), &configuration.mappings[0]);
  EXPECT_EQ(findMapping(configuration, "other", uuid), &configuration.mappings[1]);
  EXPECT_EQ(findMapping(configuration, "Train0", ""), nullptr);
  EXPECT_EQ(findMapping(configuration, "other", ""), nullptr);
}

TEST(FindMapping, ThrowsErrorNamingBothMatches) {
  const std::string uuid = "4dea22b3-1d52-d8f3-2516-782e98ab3fa0";
  const Configuration configuration = configurationOf({"train0", uuid});
  try {
    findMapping(configuration, "train0", uuid);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::badInput);
    EXPECT_THAT(error.what(), HasSubstr("train0.yaml:2:5"));
    EXPECT_THAT(error.what(), HasSubstr(uuid + ".yaml:2:5"));
  }
}

TEST(ProblemText, EscapesControlCharacters) {
  EXPECT_EQ(toString(Problem{{"a\x1b[31m.yaml", 1, 2}, "wrong", "fix"}),
            "a\\x1b[31m.yaml:1:2: wrong; fix");
}

}  // namespace
}  // namespace vfpass::config
