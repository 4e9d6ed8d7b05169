#include "stop_signals.hpp"

#include <gtest/gtest.h>

#include "vfpass/cancelled.hpp"

namespace vfpass::cli {
namespace {

TEST(StopSignalsTest, TheFirstAsksOnce) {
  const StopSignals stop;
  EXPECT_NO_THROW(StopSignals::throwIfAsked());
  ::raise(SIGTERM);
  try {
    StopSignals::throwIfAsked();
    FAIL() << "it did not stop";
  } catch (const Cancelled& cancelled) {
    EXPECT_EQ(cancelled.signal(), SIGTERM);
    EXPECT_STREQ(cancelled.what(), "stopped by SIGTERM");
  }
  EXPECT_NO_THROW(StopSignals::throwIfAsked()) << "cleaning up is not to be stopped";
}

TEST(StopSignalsTest, TheSecondEndsTheProcess) {
  const auto twice = [] {
    const StopSignals stop;
    ::raise(SIGTERM);
    ::raise(SIGTERM);
  };
  EXPECT_EXIT(twice(), testing::KilledBySignal(SIGTERM), "once more ends it at once");
}

TEST(StopSignalsTest, WhatWasIgnoredStaysSo) {
  ::signal(SIGHUP, SIG_IGN);
  {
    const StopSignals stop;
    ::raise(SIGHUP);
    EXPECT_NO_THROW(StopSignals::throwIfAsked());
  }
  EXPECT_EQ(::signal(SIGHUP, SIG_DFL), SIG_IGN);
}

TEST(StopSignalsTest, AfterwardsAllIsAsBefore) {
  { const StopSignals stop; }
  EXPECT_EQ(::signal(SIGTERM, SIG_DFL), SIG_DFL);
}

TEST(StopSignalsTest, TheShellSeesWhatEndedIt) {
  EXPECT_EXIT(endBySignal(SIGTERM), testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace vfpass::cli
