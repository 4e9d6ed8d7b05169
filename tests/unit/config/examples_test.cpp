#include <gmock/gmock.h>

#include "support.hpp"

namespace vfpass::config {
namespace {

namespace fs = std::filesystem;

const fs::path exampleFolder = fs::path(VFPASS_SOURCE_DIR) / "examples";

std::vector<fs::path> exampleFiles() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(exampleFolder)) {
    if (entry.path().extension() == ".yaml") {
      files.push_back(entry.path());
    }
  }
  return files;
}

// On copies, because a checkout may be group-writable and belong to another user.
TEST(Examples, LoadWithoutProblems) {
  EXPECT_GE(exampleFiles().size(), 6U);
  for (const auto& file : exampleFiles()) {
    const TemporaryFolder folder;
    const bool host = file.filename().string().starts_with("host");
    folder.write(host ? "host.yaml" : "vms/" + file.filename().string(), readWhole(file));
    const Configuration configuration = loadConfiguration(folder.path());
    for (const auto& problem : configuration.problems) {
      ADD_FAILURE() << toString(problem);
    }
    EXPECT_EQ(configuration.mappings.size(), host ? 0U : 1U) << file;
    EXPECT_EQ(configuration.host.pfs.empty() && configuration.softRoce.empty(), !host) << file;
  }
}

Mapping example(const std::string& name) {
  return readMappingText(readWhole(exampleFolder / name)).mapping;
}

TEST(Examples, MinimalMappingHasSafeDefaults) {
  const Mapping mapping = example("train0.yaml");
  ASSERT_EQ(mapping.vfs.size(), 1U);
  const MappedVf& vf = mapping.vfs[0];
  EXPECT_EQ(vf.pf.netdev, "ens1f0np0");
  EXPECT_TRUE(vf.macAutomatic);
  EXPECT_EQ(vf.index, std::nullopt);
  EXPECT_EQ(vf.settings.trust, false);
  EXPECT_EQ(vf.settings.spoofCheck, true);
  EXPECT_EQ(vf.settings.linkState, LinkState::automatic);
}

TEST(Examples, PciMappingSelectsPfByAddress) {
  const Mapping mapping = example("train0-pci.yaml");
  ASSERT_EQ(mapping.vfs.size(), 1U);
  EXPECT_EQ(mapping.vfs[0].pf.pci, parsePciAddress("0000:01:00.0"));
  EXPECT_EQ(mapping.vfs[0].required, (std::set{Attribute::mac, Attribute::vlan}));
}

TEST(Examples, GpudirectMappingPairsRailsWithGpus) {
  const Mapping mapping = example("gpudirect.yaml");
  ASSERT_EQ(mapping.functions.size(), 2U);
  ASSERT_EQ(mapping.vfs.size(), 2U);
  EXPECT_EQ(mapping.vfs[1].pf.near, mapping.functions[1].name);
}

}  // namespace
}  // namespace vfpass::config
