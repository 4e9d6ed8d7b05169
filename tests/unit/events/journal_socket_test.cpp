#include "vfpass/events/journal_event.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <string>

#include "vfpass/base/file_descriptor.hpp"

namespace vfpass::events {
namespace {

// A socket like the journal's, in a directory of its own.
class FakeJournal {
 public:
  FakeJournal() {
    std::string name = std::filesystem::temp_directory_path() / "vfpass-journal-XXXXXX";
    directory_ = ::mkdtemp(name.data());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path().c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  FakeJournal(const FakeJournal&) = delete;
  FakeJournal& operator=(const FakeJournal&) = delete;
  ~FakeJournal() { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::string path() const { return directory_ / "socket"; }
  [[nodiscard]] std::string received() const {
    std::string bytes(std::size_t{1} << 18U, '\0');
    const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    bytes.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
    return bytes;
  }

 private:
  std::filesystem::path directory_;
  FileDescriptor socket_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
};

TEST(JournalSocket, ReceivesTheWholeEntry) {
  const FakeJournal journal;
  const std::string entry(150000, 'x');
  EXPECT_TRUE(sendEntry(entry, journal.path().c_str()));
  EXPECT_EQ(journal.received(), entry);
}

TEST(JournalSocket, MissingOrUnusablePathIsNoError) {
  EXPECT_FALSE(sendEntry("x", "/nonexistent/socket"));
  EXPECT_FALSE(sendEntry("x", "/dev/null"));
  EXPECT_FALSE(sendEntry("x", std::string(200, 'a').c_str()));
}

TEST(JournalSocket, EmptyEntryIsNotSent) {
  const FakeJournal journal;
  EXPECT_FALSE(sendEntry("", journal.path().c_str()));
}

TEST(JournalSocket, FullJournalDoesNotBlock) {
  const FakeJournal journal;
  bool accepted = true;
  for (unsigned count = 0; accepted && count < 100000; ++count) {
    accepted = sendEntry(std::string(10000, 'x'), journal.path().c_str());
  }
  EXPECT_FALSE(accepted);
}

TEST(JournalStream, IsRecognizedByDeviceAndInode) {
  const FileDescriptor file(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  struct stat status {};
  ASSERT_EQ(::fstat(file.get(), &status), 0);
  const std::string variable = std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
  EXPECT_TRUE(isJournalStream(file.get(), variable.c_str()));
  EXPECT_FALSE(isJournalStream(file.get(), "1:2"));
  EXPECT_FALSE(isJournalStream(file.get(), ""));
  EXPECT_FALSE(isJournalStream(file.get(), nullptr));
  EXPECT_FALSE(isJournalStream(-1, variable.c_str()));
}

}  // namespace
}  // namespace vfpass::events
