#include "vfpass/remote/peer_place.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "vfpass/error.hpp"

namespace vfpass::remote {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsSupersetOf;
using testing::Not;

std::vector<std::string> optionsOf(const std::vector<std::string>& command) {
  std::vector<std::string> options;
  for (std::size_t i = 1; i < command.size(); ++i) {
    if (command[i - 1] == "-o") {
      options.push_back(command[i]);
    }
  }
  return options;
}

std::vector<std::string> lastThree(const std::vector<std::string>& command) {
  return {command.end() - 3, command.end()};
}

TEST(SshCommand, NeverContainsTheVm) {
  const auto command = sshCommand(parsePeer({"root@host2:$(reboot)"}), "vfpass observe");
  EXPECT_THAT(lastThree(command), ElementsAre("--", "host2", "vfpass observe"));
  EXPECT_THAT(command, testing::AllOf(Contains("-l"), Contains("root")));
  EXPECT_THAT(command, Each(Not(testing::HasSubstr("reboot"))));
}

TEST(SshCommand, NamesThePort) {
  const auto command =
      sshCommand(parsePeer({"qemu+ssh://host2:2222/system", "train1"}), "vfpass observe");
  const auto port = std::ranges::find(command, "-p");
  ASSERT_NE(port, command.end());
  EXPECT_EQ(*(port + 1), "2222");
}

// The user's configuration may say the opposite of each; the first value that ssh finds counts.
TEST(SshCommand, ForwardsNothingAndAsksNothing) {
  const auto command = sshCommand(parsePeer({"host2:train1"}), "vfpass observe");
  EXPECT_THAT(
      optionsOf(command),
      IsSupersetOf({"BatchMode=yes", "ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes",
                    "PermitLocalCommand=no", "ControlPath=none", "EscapeChar=none", "RequestTTY=no",
                    "ServerAliveInterval=5", "ServerAliveCountMax=3", "ConnectTimeout=15"}));
  EXPECT_THAT(command, Contains("-T"));
  EXPECT_THAT(optionsOf(command), Not(Contains(testing::StartsWith("StrictHostKeyChecking"))));
}

TEST(SshCommand, ParametersOfTheUriBecomeOptions) {
  const auto command = sshCommand(
      parsePeer({"qemu+ssh://host2/system?no_tty=1&keyfile=/root/.ssh/vfpass&no_verify=1", "vm"}),
      "vfpass observe");
  const auto key = std::ranges::find(command, "-i");
  ASSERT_NE(key, command.end());
  EXPECT_EQ(*(key + 1), "/root/.ssh/vfpass");
  EXPECT_THAT(optionsOf(command), Contains("StrictHostKeyChecking=no"));
}

TEST(SshCommand, OtherParametersAreRefused) {
  for (const char* parameter : {"command=/tmp/x", "netcat=nc", "socket=/tmp/x", "keyfile=relative",
                                "keyfile=/x%20y", "no_verify=2", "proxy=netcat", "no_such"}) {
    EXPECT_THROW(parsePeer({std::string("qemu+ssh://host2/system?") + parameter, "train1"}), Error)
        << parameter;
  }
  EXPECT_NO_THROW(parsePeer({"qemu+tls://host2/system?pkipath=/etc/pki/x", "train1"}));
}

}  // namespace
}  // namespace vfpass::remote
