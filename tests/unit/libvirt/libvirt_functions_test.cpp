#include "libvirt_functions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "vfpass/error.hpp"

namespace vfpass::libvirt {
namespace {

using testing::HasSubstr;

const SharedLibrary& missingLibrary() {
  static const SharedLibrary library({"libvfpass-missing.so.0"}, "install it");
  return library;
}

Error errorOf(const LibvirtFunction<int(int)>& function) {
  try {
    function(1);
  } catch (const Error& error) {
    return error;
  }
  return Error("called");
}

TEST(LibvirtFunction, FunctionThatThisLibvirtLacksIsNamedWhenItIsCalled) {
  const LibvirtFunction<int(int)> function("virMissing", clientLibrary);
  EXPECT_STREQ(errorOf(function).what(), "libvirt.so.0 has no function virMissing");
}

TEST(LibvirtFunction, MissingLibraryIsReportedAtEveryCall) {
  const LibvirtFunction<int(int)> function("virMissing", missingLibrary);
  for (int call = 0; call < 2; ++call) {
    EXPECT_THAT(errorOf(function).what(), HasSubstr("cannot load libvfpass-missing.so.0: "));
    EXPECT_EQ(errorOf(function).remedy(), "install it");
  }
}

TEST(LibvirtFunction, AgentCommandsAreInTheOtherLibrary) {
  EXPECT_NE(virDomainQemuAgentCommand.pointer(), nullptr);
}

}  // namespace
}  // namespace vfpass::libvirt
