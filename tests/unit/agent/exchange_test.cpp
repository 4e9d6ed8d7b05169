#include "vfpass/agent/probe_program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake/local_guest.hpp"

namespace vfpass::agent {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class ExchangeTest : public testing::Test {
 protected:
  ExchangeTest()
      : near_(nearGuest.hypervisor, Uuid{}, "train0", std::chrono::seconds(20)),
        far_(farGuest.hypervisor, Uuid{}, "train1", std::chrono::seconds(20)) {}

  static std::string folderIn(const fake::LocalGuest& guest) { return guest.folder / "exchange-1"; }

  /// Runs both probes; returns what they printed.
  std::pair<std::string, std::string> relay(const std::string& initiator,
                                            const std::string& target) {
    const PlacedProbe nearProbe{nearGuest.addProgram("probe", fake::exchangeParts + initiator),
                                false};
    const PlacedProbe farProbe{farGuest.addProgram("probe", fake::exchangeParts + target), false};
    ExchangeEnd listen(far_, farProbe, folderIn(farGuest), {"listen"});
    ExchangeEnd connect(near_, nearProbe, folderIn(nearGuest), {"connect"});
    relayLines(connect, listen);
    return {connect.result().out, listen.result().out};
  }

  /// Far guest's shell: waits until the host has asked in vain whether it has answered.
  static constexpr const char* untilHostWaits =
      "rm -f ../waits; until [ -e ../waits ]; do sleep 0.01; done; ";

  void marksThatHostWaits() {
    farGuest.hypervisor.agent = [this](const std::string& command) {
      std::string reply = farGuest.agent.answer(command);
      if (reply.find(R"("exited":false)") != std::string::npos) {
        std::ofstream(farGuest.folder / "waits");
      }
      return reply;
    };
  }

  static bool vanishes(const std::string& path) {
    return fake::eventually([&] { return !std::filesystem::exists(path); });
  }

  fake::LocalGuest nearGuest;
  fake::LocalGuest farGuest;
  Agent near_;
  Agent far_;
};

TEST_F(ExchangeTest, RelaysLinesBothWaysUntilBothProbesClose) {
  marksThatHostWaits();
  const auto [near, far] = relay("say 1 ask; echo \"near heard $(hear 1)\"; say 2 more; say 3 ''",
                                 std::string("echo \"far heard $(hear 1)\"; ") + untilHostWaits +
                                     "say 1 answer; echo \"and $(hear 2)\"; hear 3; say 2 ''");
  EXPECT_EQ(near, "near heard answer\n");
  EXPECT_EQ(far, "far heard ask\nand more\n");
}

TEST_F(ExchangeTest, RemovesBothDirectories) {
  relay("say 1 ''", "hear 1; say 1 ''");
  EXPECT_TRUE(vanishes(folderIn(nearGuest)));
  EXPECT_TRUE(vanishes(folderIn(farGuest)));
}

TEST_F(ExchangeTest, ClosesOtherSideWhenProbeIsKilled) {
  const auto [near, far] =
      relay("say 1 ask; heard=$(hear 1); echo \"near heard [$heard]\"; say 2 ''", "kill -KILL $$");
  EXPECT_EQ(near, "near heard []\n") << "an empty line means that the other side has closed";
  EXPECT_EQ(far, "");
}

TEST_F(ExchangeTest, DeliversLinesThatTargetSendsFirst) {
  const auto [near, far] =
      relay("hear 1; hear 2; say 1 ''", "say 1 one; say 2 two; hear 1; say 3 ''");
  EXPECT_EQ(near, "onetwo");
}

TEST_F(ExchangeTest, RefusesLineThatIsTooLong) {
  try {
    relay("head -c 70000 /dev/zero >unfinished; mv unfinished out.1; sleep 30", "hear 1");
    FAIL() << "relayed 70,000 bytes";
  } catch (const AgentUnavailable& error) {
    EXPECT_THAT(error.what(), HasSubstr("longer than 64 KiB"));
  }
}

TEST_F(ExchangeTest, StopsOtherProbeWhenAgentDisappears) {
  const PlacedProbe farProbe{
      farGuest.addProgram("probe", fake::exchangeParts + std::string("echo $$ >../pid; sleep 60")),
      false};
  const PlacedProbe nearProbe{
      nearGuest.addProgram("probe", fake::exchangeParts + std::string("sleep 60")), false};
  {
    ExchangeEnd listen(far_, farProbe, folderIn(farGuest), {"listen"});
    ExchangeEnd connect(near_, nearProbe, folderIn(nearGuest), {"connect"});
    nearGuest.agent.silent = true;
    EXPECT_THROW(relayLines(connect, listen), AgentUnavailable);
    EXPECT_TRUE(fake::eventually([&] { return std::filesystem::exists(farGuest.folder / "pid"); }));
  }
  EXPECT_TRUE(vanishes(folderIn(farGuest)));
  std::string pid;
  std::ifstream(farGuest.folder / "pid") >> pid;
  EXPECT_TRUE(fake::isKilled(pid));
}

}  // namespace
}  // namespace vfpass::agent
