#include "vfpass/report/progress_line.hpp"

#include <gtest/gtest.h>

#include <sstream>

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
