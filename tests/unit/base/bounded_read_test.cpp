#include "vfpass/base/bounded_read.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <functional>

#include "../../fake/temporary_folder.hpp"
#include "vfpass/base/file_descriptor.hpp"

namespace vfpass {
namespace {

int errorOf(const std::function<void()>& read) {
  try {
    read();
  } catch (const ReadRefused& refused) {
    return refused.error();
  }
  return 0;
}

class BoundedRead : public testing::Test {
 protected:
  std::filesystem::path file(const std::string& text) {
    const auto path = folder_.path() / "file";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  BoundedLines lines(const std::string& text, std::size_t longest) {
    opened_ = FileDescriptor(::open(file(text).c_str(), O_RDONLY | O_CLOEXEC));
    return {opened_.get(), longest};
  }
  fake::TemporaryFolder folder_;
  FileDescriptor opened_;
};

TEST_F(BoundedRead, ReturnsContentUpToTheLimit) {
  const std::string text(200000, 'x');
  EXPECT_EQ(readBoundedFile(file(text), text.size()), text);
  EXPECT_EQ(readBoundedFile(file(""), 0), "");
}

TEST_F(BoundedRead, RefusesMoreThanTheLimitAndNamesIt) {
  const auto path = file(std::string((1U << 20U) + 1, 'x'));
  try {
    readBoundedFile(path, 1U << 20U);
    FAIL() << "expected ReadRefused";
  } catch (const ReadRefused& refused) {
    EXPECT_STREQ(refused.what(), "larger than 1 MiB");
    EXPECT_EQ(refused.error(), EFBIG);
  }
}

// Without a check while reading this never ends.
TEST_F(BoundedRead, EndsReadingAnEndlessStream) {
  const FileDescriptor zeros(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(errorOf([&] { readBounded(zeros.get(), 100000); }), EFBIG);
  EXPECT_EQ(errorOf([&] { BoundedLines(zeros.get(), 100000).next(); }), EFBIG);
}

TEST_F(BoundedRead, RefusesFifoAndDeviceWithoutBlocking) {
  const auto fifo = folder_.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(errorOf([&] { readBoundedFile(fifo, 10); }), EINVAL);
  EXPECT_EQ(errorOf([&] { readBoundedFile("/dev/zero", 10); }), EINVAL);
}

TEST_F(BoundedRead, ReportsMissingFileAndUnreadableDescriptor) {
  EXPECT_EQ(errorOf([&] { readBoundedFile(folder_.path() / "none", 10); }), ENOENT);
  EXPECT_EQ(errorOf([] { readBounded(-1, 10); }), EBADF);
}

TEST_F(BoundedRead, SplitsLinesOfAnyReadSize) {
  const std::string longer(100000, 'y');
  BoundedLines found = lines("one\n\n" + longer + "\nlast", longer.size());
  EXPECT_EQ(found.next(), "one");
  EXPECT_EQ(found.next(), "");
  EXPECT_EQ(found.next(), longer);
  EXPECT_EQ(found.next(), "last");
  EXPECT_EQ(found.next(), std::nullopt);
  EXPECT_EQ(found.next(), std::nullopt);
}

TEST_F(BoundedRead, RefusesLineThatIsTooLongWhereverItEnds) {
  for (const char* text : {"12345\n", "12345", "1\n12345\n"}) {
    BoundedLines found = lines(text, 4);
    EXPECT_EQ(errorOf([&] {
                while (found.next()) {
                }
              }),
              EFBIG)
        << text;
  }
}

}  // namespace
}  // namespace vfpass
