#include "vfpass/report/progress_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <sstream>
#include <thread>

namespace vfpass::report {
namespace {

class ProgressLineTest : public testing::Test {
 protected:
  std::string written() {
    std::string text = out.str();
    out.str("");
    return text;
  }

  ProgressLine::Clock::time_point now;
  std::ostringstream out;
  ProgressLine line{out, true, 40, [this] { return now; }};
};

TEST_F(ProgressLineTest, ReplacesTheLineAndCountsFromTheFirst) {
  line.show("rail0, 1 of 2: host memory");
  EXPECT_EQ(written(), "\r\x1b[Krail0, 1 of 2: host memory, 0 s");
  now += std::chrono::seconds(12);
  line.show("rail1, 2 of 2: GPU memory");
  EXPECT_EQ(written(), "\r\x1b[Krail1, 2 of 2: GPU memory, 12 s");
}

TEST_F(ProgressLineTest, TicksOncePerSecond) {
  line.tick();
  EXPECT_EQ(written(), "") << "nothing to show yet";
  line.show("rail0");
  written();
  now += std::chrono::milliseconds(999);
  line.tick();
  EXPECT_EQ(written(), "");
  now += std::chrono::milliseconds(1);
  line.tick();
  EXPECT_EQ(written(), "\r\x1b[Krail0, 1 s");
}

TEST_F(ProgressLineTest, AfterTheEndTheTimeCountsAnew) {
  line.show("rail0");
  now += std::chrono::seconds(12);
  line.end();
  written();
  line.tick();
  EXPECT_EQ(written(), "") << "the old text";
  line.show("rail1");
  EXPECT_EQ(written(), "\r\x1b[Krail1, 0 s");
}

TEST_F(ProgressLineTest, RefreshWritesOnlyALineThatIsThere) {
  line.refresh();
  line.show("rail0");
  written();
  now += std::chrono::seconds(1);
  line.refresh();
  EXPECT_EQ(written(), "\r\x1b[Krail0, 1 s");
  line.clear();
  written();
  now += std::chrono::seconds(1);
  line.refresh();
  EXPECT_EQ(written(), "");
}

TEST_F(ProgressLineTest, WaitIsShownFromTheFirstSecondToItsEnd) {
  line.beginWait("waiting for libvirt");
  now += std::chrono::milliseconds(900);
  line.refresh();
  EXPECT_EQ(written(), "");
  now += std::chrono::milliseconds(100);
  line.refresh();
  EXPECT_EQ(written(), "\r\x1b[Kwaiting for libvirt, 1 s");
  now += std::chrono::seconds(1);
  line.refresh();
  EXPECT_EQ(written(), "\r\x1b[Kwaiting for libvirt, 2 s");
  line.endWait();
  EXPECT_EQ(written(), "\r\x1b[K");
  now += std::chrono::seconds(1);
  line.refresh();
  line.tick();
  EXPECT_EQ(written(), "");
}

TEST_F(ProgressLineTest, WaitLeavesTheTextOfTheCommand) {
  line.show("check libvirt");
  written();
  line.beginWait("waiting for libvirt");
  now += std::chrono::seconds(1);
  line.refresh();
  EXPECT_EQ(written(), "\r\x1b[Kcheck libvirt, 1 s");
  line.endWait();
  EXPECT_EQ(written(), "");
}

TEST(ProgressTicker, CountsWhileNothingElseHappens) {
  std::atomic<int> asked = 0;  // each time a second later
  std::ostringstream out;
  ProgressLine line(out, true, 40,
                    [&] { return ProgressLine::Clock::time_point(std::chrono::seconds(asked++)); });
  line.show("creating 8 VFs");
  {
    const ProgressTicker ticker(line, std::chrono::milliseconds(1));
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (asked < 10 && std::chrono::steady_clock::now() < limit) {
      std::this_thread::yield();
    }
  }
  EXPECT_THAT(out.str(), testing::HasSubstr("creating 8 VFs, 5 s"));
}

TEST_F(ProgressLineTest, ClearedLineComesBackWithTheNextTick) {
  line.show("rail0");
  written();
  line.clear();
  EXPECT_EQ(written(), "\r\x1b[K");
  line.clear();
  EXPECT_EQ(written(), "");
  line.tick();
  EXPECT_EQ(written(), "\r\x1b[Krail0, 0 s");
}

TEST_F(ProgressLineTest, NeverWrapsAndNeverCutsACharacter) {
  line.show(std::string(33, 'x') + "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4");
  EXPECT_EQ(written(), "\r\x1b[K" + std::string(33, 'x') + ", 0 s");
}

TEST_F(ProgressLineTest, NarrowTerminalShowsTheTextWithoutTheTime) {
  const auto shownWith = [&](std::size_t columns) {
    std::ostringstream narrow;
    ProgressLine(narrow, true, columns, [this] { return now; }).show("rail0");
    return narrow.str().substr(4, narrow.str().size() - 8);  // between the two erasures
  };
  EXPECT_EQ(shownWith(7), "r, 0 s");
  EXPECT_EQ(shownWith(6), "rail0");
  EXPECT_EQ(shownWith(3), "ra");
  EXPECT_EQ(shownWith(1), "") << "one character would already wrap";
  EXPECT_EQ(shownWith(0), "");
}

TEST_F(ProgressLineTest, EscapesControlCharacters) {
  line.show("rail0\x1b[2J\n");
  EXPECT_EQ(written(), "\r\x1b[Krail0\\x1b[2J\\x0a, 0 s");
}

TEST(ProgressLine, WritesNothingUnlessEnabled) {
  std::ostringstream out;
  {
    ProgressLine line(out, false);
    line.show("rail0");
    line.tick();
    line.clear();
    line.beginWait("waiting for libvirt");
    line.refresh();
    line.endWait();
  }
  EXPECT_EQ(out.str(), "");
}

TEST(ProgressLine, RemovesItselfAtTheEnd) {
  std::ostringstream out;
  {
    ProgressLine line(out, true);
    line.show("rail0");
  }
  EXPECT_TRUE(out.str().ends_with("\r\x1b[K"));
}

}  // namespace
}  // namespace vfpass::report
