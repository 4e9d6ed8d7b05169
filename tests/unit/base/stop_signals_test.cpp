#include "vfpass/base/own_process.hpp"

#include <gtest/gtest.h>

#include "vfpass/error.hpp"

namespace vfpass {
namespace {

TEST(StopSignalsTest, FirstSignalRequestsStopOnce) {
  const StopSignals stop;
  EXPECT_NO_THROW(StopSignals::throwIfAsked());
  ::raise(SIGTERM);
  try {
    StopSignals::throwIfAsked();
    FAIL() << "not cancelled";
  } catch (const Cancelled& cancelled) {
    EXPECT_EQ(cancelled.signal(), SIGTERM);
    EXPECT_STREQ(cancelled.what(), "stopped by SIGTERM");
  }
  EXPECT_NO_THROW(StopSignals::throwIfAsked()) << "the cleanup must not be cancelled";
}

TEST(StopSignalsTest, SecondSignalKillsTheProcess) {
  const auto twice = [] {
    const StopSignals stop;
    ::raise(SIGTERM);
    ::raise(SIGTERM);
  };
  EXPECT_EXIT(twice(), testing::KilledBySignal(SIGTERM), "a second signal stops it immediately");
}

TEST(StopSignalsTest, IgnoredSignalsStayIgnored) {
  ::signal(SIGHUP, SIG_IGN);
  {
    const StopSignals stop;
    ::raise(SIGHUP);
    EXPECT_NO_THROW(StopSignals::throwIfAsked());
  }
  EXPECT_EQ(::signal(SIGHUP, SIG_DFL), SIG_IGN);
}

TEST(StopSignalsTest, NestedObjectKeepsTheRequestOfTheOuterOne) {
  const StopSignals outer;
  ::raise(SIGTERM);
  {
    const StopSignals inner;
    EXPECT_THROW(StopSignals::throwIfAsked(), Cancelled);
  }
  EXPECT_NO_THROW(StopSignals::throwIfAsked());
}

TEST(StopSignalsTest, NestedObjectLeavesTheSecondSignalItsDefaultAction) {
  const auto twice = [] {
    const StopSignals outer;
    ::raise(SIGTERM);
    const StopSignals inner;
    ::raise(SIGTERM);
  };
  EXPECT_EXIT(twice(), testing::KilledBySignal(SIGTERM), "a second signal stops it immediately");
}

TEST(StopSignalsTest, OuterObjectHandlesSignalsAfterTheNestedOne) {
  const StopSignals outer;
  { const StopSignals inner; }
  ::raise(SIGTERM);
  EXPECT_THROW(StopSignals::throwIfAsked(), Cancelled);
}

TEST(StopSignalsTest, DestructorRestoresSignalActions) {
  { const StopSignals stop; }
  EXPECT_EQ(::signal(SIGTERM, SIG_DFL), SIG_DFL);
}

TEST(StopSignalsTest, EndBySignalTerminatesWithThatSignal) {
  EXPECT_EXIT(endBySignal(SIGTERM), testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace vfpass
