#include "channel/channel.hpp"

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "hosts/sysfs_tree.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

using testing::HasSubstr;
using testing::Property;
using testing::Throws;

class ChannelTest : public testing::Test {
 protected:
  ChannelTest() {
    std::array<int, 2> sockets{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
    channel.emplace(socketTransport(FileDescriptor(sockets[0])), deadline);
    other = FileDescriptor(sockets[1]);
  }

  void otherSends(std::string_view text) const {
    ASSERT_EQ(::send(other.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  }

  Deadline deadline{std::chrono::seconds(10)};
  std::optional<Channel> channel;
  FileDescriptor other;
};

TEST_F(ChannelTest, ReadsOneMessageFromEachLine) {
  otherSends("{\"type\":\"ready\",\"number\":1}\n{\"type\":\"conn");
  EXPECT_EQ(channel->receive("ready").at("number"), 1);
  otherSends("ected\"}\n");
  EXPECT_NO_THROW(channel->receive("connected"));
}

TEST_F(ChannelTest, ReportsErrorOfOtherSide) {
  otherSends("{\"type\":\"failed\",\"error\":\"no \\u001b[31mlink\",\"remedy\":\"connect one\"}\n");
  EXPECT_THAT([this] { channel->receive("ready"); },
              Throws<Error>(Property(&Error::what, HasSubstr("no \\x1b[31mlink"))));
}

TEST_F(ChannelTest, FailsWhenOtherSideIsGone) {
  other.reset();
  EXPECT_THROW(channel->receive("ready"), Error);
  EXPECT_THROW(channel->send({{"type", "begin"}}), Error);
}

TEST_F(ChannelTest, RefusesMessageWithoutEnd) {
  const std::string part(30000, 'x');
  for (int i = 0; i < 3; ++i) {
    otherSends(part);
  }
  EXPECT_THROW(channel->receive("ready"), Error);
}

TEST_F(ChannelTest, RefusesUnexpectedMessage) {
  otherSends("{\"type\":\"connected\"}\n");
  EXPECT_THROW(channel->receive("ready"), Error);
  otherSends("[]\n");
  EXPECT_THROW(channel->receive("ready"), Error);
}

TEST(Channel, FailsAtDeadline) {
  std::array<int, 2> sockets{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
  const FileDescriptor silent(sockets[1]);
  const Deadline soon(std::chrono::milliseconds(50));
  Channel channel(socketTransport(FileDescriptor(sockets[0])), soon);
  EXPECT_THAT([&] { channel.receive("ready"); },
              Throws<Error>(Property(&Error::what, HasSubstr("deadline"))));
}

TEST(Folder, CarriesLinesByNumber) {
  const hosts::SysfsTree folder;
  const Deadline soon(std::chrono::milliseconds(200));
  auto transport = folderTransport(folder.path());
  transport->send("one", soon);
  transport->send("two", soon);
  EXPECT_EQ(folder.content("out.2"), "two\n");
  folder.file("in.1", "answer\n");
  EXPECT_EQ(transport->receive(soon), "answer");
  EXPECT_THROW(transport->receive(soon), Error);
  folder.file("in.2", "");
  EXPECT_EQ(transport->receive(Deadline(std::chrono::seconds(5))), std::nullopt);
  transport.reset();
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "out.3"));
  EXPECT_THROW(folderTransport(folder.path()), Error);
  EXPECT_THROW(folderTransport(folder.path() / "absent"), Error);
}

TEST(Folder, ReadsLineThatExistedBeforeStart) {
  const hosts::SysfsTree folder;
  folder.file("in.1", "early\n");
  auto transport = folderTransport(folder.path());
  EXPECT_EQ(transport->receive(Deadline(std::chrono::seconds(5))), "early");
}

TEST(Tcp, FailsAtDeadlineOrForInvalidAddress) {
  const Deadline soon(std::chrono::milliseconds(100));
  EXPECT_THROW(connectTo("127.0.0.1", "1", soon), Error);
  EXPECT_THROW(connectTo("not-a-number", "1", soon), Error);
  EXPECT_THROW(acceptOne("127.0.0.1", "0", Deadline(std::chrono::milliseconds(10))), Error);
}

}  // namespace
}  // namespace vfpass::probe
