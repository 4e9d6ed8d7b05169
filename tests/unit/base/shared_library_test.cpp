#include "vfpass/base/shared_library.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "vfpass/error.hpp"

namespace vfpass {
namespace {

using testing::HasSubstr;

TEST(SharedLibrary, LoadsTheFirstThatExists) {
  const SharedLibrary library({"libvfpass-missing.so.1", "libm.so.6"}, "");
  double (*cosine)(double) = nullptr;
  library.require(cosine, "cos");
  EXPECT_EQ(cosine(0), 1);
}

TEST(SharedLibrary, MissingLibraryIsReportedWithTheRemedy) {
  try {
    const SharedLibrary library({"libvfpass-missing.so.1", "libvfpass-missing.so.2"}, "install it");
    FAIL() << "loaded";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("cannot load libvfpass-missing.so.1 or libvfpass-missing.so.2: "));
    EXPECT_THAT(error.what(), HasSubstr("No such file"));
    EXPECT_EQ(error.remedy(), "install it");
  }
}

TEST(SharedLibrary, MissingFunctionIsReportedOnlyIfRequired) {
  const SharedLibrary library({"libm.so.6"}, "");
  void (*function)() = nullptr;
  library.find(function, "vfpassMissing");
  EXPECT_EQ(function, nullptr);
  try {
    library.require(function, "vfpassMissing");
    FAIL() << "found";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("libm.so.6 has no function vfpassMissing"));
  }
}

}  // namespace
}  // namespace vfpass
