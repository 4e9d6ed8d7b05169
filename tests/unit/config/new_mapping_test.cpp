#include "vfpass/config/configuration.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support.hpp"
#include "vfpass/error.hpp"

namespace vfpass::config {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* domainUuid = "4dea22b3-1d52-d8f3-2516-782e98ab3fa0";

std::string mappingText(const std::string& vm, const std::string& more = "") {
  return "version: 1\nvm: " + vm + "\ngpus: [{name: gpu0, pci: \"3a:00.0\"}]\n" + more;
}

NewMapping proposed(const std::string& vm) { return {vm, vm, domainUuid, mappingText(vm)}; }

// The message and the remedy; empty if the file was written.
std::string refusal(const fs::path& directory, const NewMapping& mapping) {
  try {
    writeNewMapping(directory, mapping);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::badInput);
    return std::string(error.what()) + "; " + error.remedy();
  }
}

std::ptrdiff_t filesIn(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

TEST(WriteNewMapping, CreatesDirectoriesAndFile) {
  const TemporaryFolder folder;
  const fs::path file = writeNewMapping(folder.path() / "vfpass", proposed("train0"));
  EXPECT_EQ(file, folder.path() / "vfpass/vms/train0.yaml");
  EXPECT_EQ(readWhole(file), mappingText("train0"));
  const Configuration configuration = loadConfiguration(folder.path() / "vfpass");
  EXPECT_NE(findMapping(configuration, "train0", ""), nullptr);
}

TEST(WriteNewMapping, RefusesVmWithAMappingInAnyFile) {
  const TemporaryFolder folder;
  folder.write("vms/other.yaml", mappingText("train0"));
  EXPECT_THAT(refusal(folder.path(), proposed("train0")),
              AllOf(HasSubstr("VM train0 has a mapping already"), HasSubstr("other.yaml:2:5")));
  EXPECT_EQ(filesIn(folder.path() / "vms"), 1);
}

TEST(WriteNewMapping, KnowsNameAndUuidOfADomain) {
  const TemporaryFolder folder;
  folder.write("vms/other.yaml", mappingText(domainUuid));
  EXPECT_THAT(refusal(folder.path(), proposed("train0")), HasSubstr("has a mapping already"));
  folder.write("vms/other.yaml", mappingText("train0"));
  EXPECT_THAT(refusal(folder.path(), {domainUuid, "train0", domainUuid, mappingText(domainUuid)}),
              HasSubstr("has a mapping already"));
}

TEST(WriteNewMapping, CountsAMappingWithMistakes) {
  const TemporaryFolder folder;
  folder.write("vms/a.yaml", "version: 2\nvm: train0\n");
  EXPECT_THAT(refusal(folder.path(), proposed("train0")), HasSubstr("a.yaml (which has mistakes)"));
}

TEST(WriteNewMapping, RefusesToReplaceTheMappingOfAnotherVm) {
  const TemporaryFolder folder;
  const fs::path file =
      folder.write("vms/train0.yaml", "version: 1\nvm: x\nvfs: [{name: a, pf: {netdev: b}}]\n");
  const std::string before = readWhole(file);
  EXPECT_THAT(refusal(folder.path(), proposed("train0")), HasSubstr("exists already"));
  EXPECT_EQ(readWhole(file), before);
}

TEST(WriteNewMapping, RefusesADeviceOfAnotherMapping) {
  const TemporaryFolder folder;
  folder.write("vms/a.yaml", mappingText("a"));
  EXPECT_THAT(refusal(folder.path(), proposed("train0")),
              HasSubstr("PCI function 0000:3a:00.0 already belongs to gpu0 of a"));
  EXPECT_EQ(filesIn(folder.path() / "vms"), 1);
}

TEST(WriteNewMapping, IgnoresMistakesOfOtherFiles) {
  const TemporaryFolder folder;
  folder.write("vms/a.yaml", "nonsense: [");
  folder.write("host.yaml", "nonsense: [");
  EXPECT_EQ(refusal(folder.path(), proposed("train0")), "");
}

TEST(ProblemsOfMapping, DoNotCompareAFileWithItsOldText) {
  const TemporaryFolder folder;
  const fs::path file = folder.write("vms/a.yaml", mappingText("a"));
  folder.write("vms/b.yaml", "version: 1\nvm: b\ngpus: [{name: gpu0, pci: \"3b:00.0\"}]\n");
  const Configuration configuration = loadConfiguration(folder.path());
  EXPECT_TRUE(problemsOfMapping(file, mappingText("a"), configuration).empty());
  EXPECT_EQ(readProposed(mappingText("a")).value_or(Mapping{}).vm, "a");
  EXPECT_FALSE(readProposed("version: 1\nvm: a\nvfs: [{}]\n"));
  EXPECT_EQ(problemsOfMapping(file, mappingText("b"), configuration).size(), 1U);
  EXPECT_EQ(problemsOfMapping(file, "version: 1\nvm: a\ngpus: [{name: g, pci: \"3b:00.0\"}]\n",
                              configuration)
                .size(),
            1U);
}

TEST(WriteNewMapping, RefusesTextWithMistakes) {
  const TemporaryFolder folder;
  NewMapping mapping = proposed("train0");
  mapping.text += "gpu: []\n";
  EXPECT_THAT(refusal(folder.path(), mapping), HasSubstr("train0.yaml:4:1: unknown key `gpu`"));
  EXPECT_FALSE(fs::exists(folder.path() / "vms"));
}

TEST(WriteNewMapping, RefusesADirectoryThatOthersCanWriteTo) {
  const TemporaryFolder folder;
  folder.write("vms/a.yaml", "version: 1\nvm: x\nvfs: [{name: a, pf: {netdev: b}}]\n");
  ::chmod((folder.path() / "vms").c_str(), 0777);
  EXPECT_THAT(refusal(folder.path(), proposed("train0")), HasSubstr("chmod o-w"));
  EXPECT_EQ(filesIn(folder.path() / "vms"), 1);
}

// root could write there all the same.
TEST(WriteNewMapping, WithoutRightsIsOneErrorWithRemedy) {
  const TemporaryFolder folder;
  ::chmod(folder.path().c_str(), 0555);
  const bool root = ::geteuid() == 0;
  ASSERT_TRUE(!root || ::seteuid(65534) == 0);
  std::string found;
  try {
    writeNewMapping(folder.path(), proposed("train0"));
  } catch (const Error& error) {
    found = std::string(error.what()) + "; " + error.remedy();
  }
  ASSERT_TRUE(!root || ::seteuid(0) == 0);
  ::chmod(folder.path().c_str(), 0755);
  EXPECT_EQ(found, "cannot create directory " + (folder.path() / "vms").string() +
                       ": Permission denied (EACCES); run as root, or as the owner of the "
                       "directory above it");
}

std::string hostRefusal(const fs::path& directory, const std::string& text) {
  try {
    writeNewHostPolicy(directory, text);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::badInput);
    return std::string(error.what()) + "; " + error.remedy();
  }
}

constexpr const char* hostText = "version: 1\npfs: [{pf: {netdev: ens1}, mtu: 9000}]\n";

TEST(WriteNewHostPolicy, CreatesDirectoryAndFile) {
  const TemporaryFolder folder;
  const fs::path file = writeNewHostPolicy(folder.path() / "vfpass", hostText);
  EXPECT_EQ(file, folder.path() / "vfpass/host.yaml");
  EXPECT_EQ(readWhole(file), hostText);
  EXPECT_TRUE(loadConfiguration(folder.path() / "vfpass").problems.empty());
}

TEST(WriteNewHostPolicy, RefusesToReplaceAFile) {
  const TemporaryFolder folder;
  const fs::path file = folder.write("host.yaml", "version: 1\n");
  EXPECT_THAT(hostRefusal(folder.path(), hostText), HasSubstr("exists already"));
  EXPECT_EQ(readWhole(file), "version: 1\n");
}

TEST(WriteNewHostPolicy, RefusesTextWithMistakes) {
  const TemporaryFolder folder;
  EXPECT_THAT(hostRefusal(folder.path(), "version: 1\nmtu: 9000\n"),
              HasSubstr("host.yaml:2:1: unknown key `mtu`"));
  EXPECT_EQ(filesIn(folder.path()), 0);
}

TEST(WriteNewHostPolicy, RefusesADirectoryThatOthersCanWriteTo) {
  const TemporaryFolder folder;
  ::chmod(folder.path().c_str(), 0777);
  EXPECT_THAT(hostRefusal(folder.path(), hostText), HasSubstr("chmod o-w"));
  EXPECT_EQ(filesIn(folder.path()), 0);
}

TEST(WriteNewMapping, RefusesNamesThatAreNoFileNames) {
  const TemporaryFolder folder;
  for (const std::string name : {"", ".hidden", "../train0", "a/b"}) {
    EXPECT_THAT(refusal(folder.path(), proposed(name)), HasSubstr("cannot name a file")) << name;
  }
  EXPECT_THAT(refusal(folder.path(), proposed(std::string(201, 'x'))),
              HasSubstr("cannot name a file"));
}

}  // namespace
}  // namespace vfpass::config
