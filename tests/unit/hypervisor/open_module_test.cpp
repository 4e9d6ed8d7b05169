#include "vfpass/hypervisor/libvirt_module.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "fake/temporary_folder.hpp"
#include "vfpass/error.hpp"
#include "vfpass/hypervisor/module_build.hpp"

namespace vfpass::hypervisor {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path built = fs::path(VFPASS_BINARY_DIR) / "libexec/vfpass-libvirt.so";
const fs::path modules = VFPASS_TEST_MODULES;

Error refusal(const fs::path& module) {
  try {
    openModule(module);
  } catch (const Error& error) {
    return error;
  }
  return Error("opened");
}

TEST(OpenModule, ConnectsThroughTheModule) {
  const LibvirtModule& module = openModule(built);
  EXPECT_STREQ(module.build, VFPASS_MODULE_BUILD);
  EXPECT_TRUE(module.connect("test:///default")->findDomain("test").has_value());
  EXPECT_THAT(module.daemonVersions("test:///default"), HasSubstr(" 0.0.2"));
}

TEST(OpenModule, ErrorsOfTheModuleKeepTheirTypeRemedyAndCode) {
  const LibvirtModule& module = openModule(built);
  try {
    module.connect("qemu+carrier-pigeon:///system");
    FAIL() << "connected";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("as a libvirt URI"));
    EXPECT_THAT(error.remedy(), HasSubstr("--connect"));
    EXPECT_EQ(error.code(), ExitCode::badInput);
  }
}

TEST(OpenModule, MissingModuleIsReportedWithItsPath) {
  const Error error = refusal("/nonexistent/vfpass-libvirt.so");
  EXPECT_THAT(error.what(), HasSubstr("cannot use the libvirt module "
                                      "/nonexistent/vfpass-libvirt.so: No such file"));
  EXPECT_THAT(error.remedy(), HasSubstr("install vfpass again"));
  EXPECT_EQ(error.code(), ExitCode::failed);
}

TEST(OpenModule, RefusesModuleOfAnotherBuild) {
  const Error error = refusal(modules / "other_build.so");
  EXPECT_THAT(error.what(), HasSubstr("belongs to vfpass 0.0.9-other, and this is vfpass "));
  EXPECT_THAT(error.what(), HasSubstr(VFPASS_MODULE_BUILD));
  EXPECT_THAT(error.remedy(), HasSubstr("install vfpass again"));
}

TEST(OpenModule, RefusesLibraryThatIsNoModule) {
  EXPECT_THAT(refusal(modules / "without_factory.so").what(), HasSubstr(libvirtModuleSymbol));
}

TEST(OpenModule, ReportsTheLoadersReason) {
  const fake::TemporaryFolder folder;
  const fs::path file = folder.path() / "vfpass-libvirt.so";
  std::ofstream(file) << "no library, but longer than an ELF header would be: "
                      << std::string(64, 'x');
  ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  const Error error = refusal(file);
  EXPECT_THAT(error.what(), HasSubstr("invalid ELF header"));
  EXPECT_THAT(error.remedy(), HasSubstr("libvirt0"));
}

class ModuleOfOthers : public testing::Test {
 protected:
  ModuleOfOthers() { fs::copy_file(built, file); }

  fake::TemporaryFolder folder;
  fs::path file = folder.path() / "vfpass-libvirt.so";
};

TEST_F(ModuleOfOthers, RefusesModuleThatEverybodyCanChange) {
  ASSERT_EQ(::chmod(file.c_str(), 0646), 0);
  EXPECT_THAT(refusal(file).what(), HasSubstr("users who cannot change vfpass itself"));
}

TEST_F(ModuleOfOthers, RefusesModuleOfAnotherUser) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root to change the owner";
  }
  ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  ASSERT_EQ(::chown(file.c_str(), 65534, 0), 0);
  EXPECT_THAT(refusal(file).what(), HasSubstr("users who cannot change vfpass itself"));
}

}  // namespace
}  // namespace vfpass::hypervisor
