#include "vfpass/host/function_reset.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hosts/sysfs_tree.hpp"
#include "vfpass/host/pci_function.hpp"

namespace vfpass::host {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ResetMethodsTest : public testing::Test {
 protected:
  ResetMethodsTest() { folder_ = tree_.function("0000:02:00.0", "0x030200"); }
  void methods(const std::string& text) { tree_.file(folder_ + "/reset_method", text); }
  Device read() { return readPciFunction(Root(tree_.path()), {0, 2, 0, 0}).value(); }

  hosts::SysfsTree tree_;
  std::string folder_;
};

TEST_F(ResetMethodsTest, ReadsMethodsInKernelOrder) {
  methods("flr bus\n");
  EXPECT_THAT(read().resetMethods.value(), ElementsAre("flr", "bus"));
}

TEST_F(ResetMethodsTest, NotObservableWithoutFile) { EXPECT_FALSE(read().resetMethods); }

TEST_F(ResetMethodsTest, EmptyFileMeansNoReset) {
  methods("\n");
  EXPECT_THAT(read().resetMethods.value(), IsEmpty());
}

TEST_F(ResetMethodsTest, ReadsBusPeersWithoutFunctionReset) {
  tree_.function("0000:02:00.1", "0x040300");
  tree_.bind("0000:02:00.1", "snd_hda_intel");
  tree_.function("0000:03:00.0");
  methods("flr\n");
  EXPECT_THAT(read().busPeers, IsEmpty());
  for (const char* text : {"", "bus\n"}) {
    methods(text);
    EXPECT_THAT(read().busPeers, ElementsAre(GroupPeer{{0, 2, 0, 1}, 0x040300, "snd_hda_intel"}));
  }
}

}  // namespace
}  // namespace vfpass::host
