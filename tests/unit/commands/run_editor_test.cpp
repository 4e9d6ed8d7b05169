#include "run_editor.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace vfpass::commands {
namespace {

// StopSignals sets SA_RESETHAND, so that a second Ctrl-C ends vfpass.
TEST(RunEditor, RestoresHandlerWithItsFlags) {
  struct sigaction before = {};
  struct sigaction resetting = {};
  resetting.sa_handler = [](int) {};
  resetting.sa_flags = static_cast<int>(SA_RESETHAND);
  ASSERT_EQ(::sigaction(SIGINT, &resetting, &before), 0);
  runEditor("true", "file");
  struct sigaction after = {};
  ASSERT_EQ(::sigaction(SIGINT, &before, &after), 0);
  EXPECT_EQ(after.sa_handler, resetting.sa_handler);
  EXPECT_NE(static_cast<unsigned>(after.sa_flags) & static_cast<unsigned>(SA_RESETHAND), 0U);
}

}  // namespace
}  // namespace vfpass::commands
