#include "operation_log.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "vfpass/base/file_descriptor.hpp"

namespace vfpass::commands {
namespace {

using testing::HasSubstr;
using testing::Not;

class OperationLogTest : public testing::Test {
 protected:
  OperationLogTest() {
    std::string name = std::filesystem::temp_directory_path() / "vfpass-log-XXXXXX";
    directory_ = ::mkdtemp(name.data());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path().c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~OperationLogTest() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::string path() const { return directory_ / "socket"; }
  /// Empty: nothing.
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

TEST_F(OperationLogTest, RecordsAnOperationOnce) {
  OperationLog log(true, false, path());
  log.begin(events::Operation::attach, "train");
  log.setDomain(Uuid{{1}}, "train0");
  log.done("attached");
  const std::string entry = received();
  EXPECT_THAT(entry, HasSubstr("1a1e18434ef5407e82a8aca528a2b8c8"));
  EXPECT_THAT(entry, HasSubstr("train0"));
  EXPECT_FALSE(log.failed(Error("later"))) << "the operation has ended";
  EXPECT_EQ(received(), "");
}

TEST_F(OperationLogTest, RefusalAndMissingVerdictAreResultsOfTheirOwn) {
  OperationLog log(true, true, path());
  log.begin(events::Operation::detach);
  EXPECT_TRUE(log.failed(Error("in use", "stop it", ExitCode::refused)));
  EXPECT_THAT(received(), HasSubstr("refused"));
  log.begin(events::Operation::verify);
  EXPECT_TRUE(log.failed(Error("no agent", "", ExitCode::unverified)));
  EXPECT_THAT(received(), HasSubstr("unverified"));
}

TEST_F(OperationLogTest, ErrorStillGoesToAStderrThatIsNotTheJournal) {
  OperationLog log(true, false, path());
  log.begin(events::Operation::attach);
  EXPECT_FALSE(log.failed(Error("broken")));
  EXPECT_THAT(received(), HasSubstr("broken"));
}

TEST_F(OperationLogTest, NothingIsRecordedWithoutAnOperationOrForOthersThanRoot) {
  OperationLog log(true, false, path());
  log.done("nothing has begun");
  OperationLog unprivileged(false, false, path());
  unprivileged.begin(events::Operation::attach);
  unprivileged.done("attached");
  EXPECT_EQ(received(), "");
}

TEST_F(OperationLogTest, MissingJournalChangesNothing) {
  OperationLog log(true, true, "/nonexistent");
  log.begin(events::Operation::attach);
  EXPECT_FALSE(log.writeLine(events::Priority::info, "x")) << "the line goes to stderr";
  EXPECT_FALSE(log.failed(Error("broken"))) << "and so does the error";
}

TEST_F(OperationLogTest, LinesGoToTheJournalOnlyIfStderrEndsThere) {
  OperationLog service(true, true, path());
  service.begin(events::Operation::gc);
  EXPECT_TRUE(service.writeLine(events::Priority::warning, "warning: x"));
  const std::string line = received();
  EXPECT_THAT(line, HasSubstr("warning: x"));
  EXPECT_THAT(line, Not(HasSubstr("MESSAGE_ID")));
  OperationLog terminal(true, false, path());
  EXPECT_FALSE(terminal.writeLine(events::Priority::warning, "warning: x"));
  EXPECT_EQ(received(), "");
}

TEST_F(OperationLogTest, RecordingAnotherOperationKeepsTheCurrentOne) {
  OperationLog log(true, false, path());
  log.begin(events::Operation::attach, "train0");
  log.record(events::Operation::recover, Uuid{}, "", {events::Result::done, "rolled back"});
  EXPECT_THAT(received(), Not(HasSubstr("VFPASS_VM")));
  log.done("attached");
  EXPECT_THAT(received(), HasSubstr("train0"));
}

TEST(InvokingUser, IsTheLoginUserThenTheUserOfSudo) {
  EXPECT_EQ(invokingUserId("1000", "1001"), 1000U);
  EXPECT_EQ(invokingUserId("4294967295", "1001"), 1001U);
  EXPECT_EQ(invokingUserId("", "1001"), 1001U);
  EXPECT_EQ(invokingUserId("0", nullptr), 0U);
}

TEST(InvokingUser, IsUnknownForServicesAndDamagedValues) {
  EXPECT_EQ(invokingUserId("4294967295", nullptr), std::nullopt);
  EXPECT_EQ(invokingUserId("4294967295", "root"), std::nullopt);
  EXPECT_EQ(invokingUserId("-1", "99999999999"), std::nullopt);
}

}  // namespace
}  // namespace vfpass::commands
