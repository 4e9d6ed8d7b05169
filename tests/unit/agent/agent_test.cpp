#include "vfpass/agent/agent.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>
#include <utility>

#include "fake/fake_hypervisor.hpp"
#include "vfpass/agent/guest_scripts.hpp"
#include "vfpass/base/call_within.hpp"
#include "vfpass/base/default_deadlines.hpp"

namespace vfpass::agent {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;
using Json = nlohmann::json;

constexpr const char* info = R"({"return": {"version": "7.2.0", "supported_commands": [
  {"name": "guest-exec", "enabled": true, "success-response": true},
  {"name": "guest-exec-status", "enabled": true, "success-response": true}]}})";

// Replies as qemu-ga 7.2 sends them; the lab tests use the real agent.
class AgentTest : public testing::Test {
 protected:
  AgentTest() {
    hypervisor.agent = [this](const std::string& command) {
      const Json request = Json::parse(command);
      const std::string name = request["execute"];
      commands.push_back(name);
      return answers.contains(name) ? answers[name] : std::string(R"({"return": {}})");
    };
    answers["guest-info"] = info;
    answers["guest-exec"] = R"({"return": {"pid": 77}})";
    setOutput("");
    answers["guest-network-get-interfaces"] = R"({"return": []})";
  }

  void setOutput(const std::string& base64) {
    answers["guest-exec-status"] =
        R"({"return": {"exited": true, "exitcode": 0, "out-data": ")" + base64 + "\"}}";
  }

  Agent agent(int timeout = 5) {
    return {hypervisor, Uuid{}, "train0", std::chrono::seconds(timeout)};
  }

  static Lease lease() {
    Lease lease;
    vfOf(lease).settings.mac = parseMacAddress("52:54:00:aa:bb:cc");
    return lease;
  }

  fake::FakeHypervisor hypervisor;
  std::map<std::string, std::string> answers;
  std::vector<std::string> commands;
};

TEST_F(AgentTest, RunsProgramAndDecodesItsOutput) {
  setOutput("aGVsbG8K");
  const auto result = agent().run("/bin/true", {});
  EXPECT_EQ(result.out, "hello\n");
  EXPECT_EQ(result.exitCode, 0);
  EXPECT_EQ(commands.front(), "guest-info") << "the allowed commands are queried first";
}

TEST_F(AgentTest, ReportsBlockedCommandsWithRemediesForRhelAndDebian) {
  answers["guest-info"] =
      R"({"return": {"supported_commands": [{"name": "guest-exec", "enabled": false}]}})";
  try {
    agent().run("/bin/true", {});
    FAIL();
  } catch (const AgentUnavailable& error) {
    EXPECT_EQ(error.code(), ExitCode::unverified);
    EXPECT_THAT(error.what(), HasSubstr("does not allow guest-exec"));
    EXPECT_THAT(error.remedy(), HasSubstr("/etc/sysconfig/qemu-ga"));
    EXPECT_THAT(error.remedy(), HasSubstr("/etc/qemu/qemu-ga.conf"));
  }
}

// RHEL's package blocks several. Reporting them one by one would take one agent restart each.
TEST_F(AgentTest, NamesEveryBlockedCommandAtOnce) {
  answers["guest-info"] =
      R"({"return": {"supported_commands": [{"name": "guest-exec", "enabled": false},
          {"name": "guest-file-close", "enabled": true}, {"name": "guest-ping", "enabled": true}]}})";
  try {
    agent().run("/bin/true", {});
    FAIL();
  } catch (const AgentUnavailable& error) {
    const std::string all = "guest-exec, guest-exec-status, guest-file-open, guest-file-write";
    EXPECT_TRUE(std::string(error.what()).ends_with("does not allow " + all)) << error.what();
    EXPECT_THAT(error.remedy(), HasSubstr("allow " + all + " in the guest"));
  }
}

TEST_F(AgentTest, IsUnavailableWithoutAgent) {
  hypervisor.agent = nullptr;
  EXPECT_THROW(agent().run("/bin/true", {}), AgentUnavailable);
}

TEST_F(AgentTest, SuggestsResumingSuspendedDomain) {
  hypervisor.agent = [](const std::string&) -> std::string {
    throw Error("Requested operation is not valid: domain is not running", "");
  };
  try {
    agent().run("/bin/true", {});
    FAIL();
  } catch (const AgentUnavailable& error) {
    EXPECT_EQ(error.remedy(), "virsh resume train0");
  }
}

// libvirt's message if the agent has opened the channel, and a call times out.
TEST_F(AgentTest, SilentAgentIsNotCalledMissing) {
  hypervisor.agent = [](const std::string&) -> std::string {
    throw Error("Guest agent is not responding: Guest agent not available for now", "");
  };
  try {
    agent().run("/bin/true", {});
    FAIL();
  } catch (const AgentUnavailable& error) {
    EXPECT_THAT(error.remedy(), HasSubstr("check the load in the guest"));
    EXPECT_THAT(error.remedy(), Not(HasSubstr("install")));
  }
}

TEST_F(AgentTest, LongTimeoutAllowsSlowReplies) {
  for (const auto& [whole, call] : {std::pair{5, 5}, std::pair{600, 20}, std::pair{1800, 60}}) {
    agent(whole).run("/bin/true", {});
    EXPECT_EQ(hypervisor.agentTimeout.load(), std::chrono::seconds(call)) << whole;
  }
}

// glib's message, which qemu-ga passes on; libvirt prefixes it.
TEST_F(AgentTest, DeniedProgramHasSelinuxRemedy) {
  const auto scripted = hypervisor.agent;
  hypervisor.agent = [&](const std::string& command) -> std::string {
    if (command.find("\"guest-exec\"") != std::string::npos) {
      throw Error(
          "internal error: unable to execute QEMU agent command 'guest-exec': Failed to execute "
          "child process \"/bin/true\" (Permission denied)",
          "");
    }
    return scripted(command);
  };
  try {
    agent().run("/bin/true", {});
    FAIL();
  } catch (const AgentUnavailable& error) {
    EXPECT_EQ(error.code(), ExitCode::unverified);
    EXPECT_THAT(error.remedy(), HasSubstr("virt_qemu_ga_unconfined_exec_t"));
  }
}

TEST_F(AgentTest, TimesOutWhenProgramNeverExits) {
  answers["guest-exec-status"] = R"({"return": {"exited": false}})";
  try {
    agent(1).run("/bin/sleep", {"9"});
    FAIL();
  } catch (const AgentUnavailable& error) {
    EXPECT_STREQ(error.what(), "the guest agent of domain train0 timed out");
  }
}

TEST_F(AgentTest, StopsProgramThatDoesNotEndInTime) {
  answers["guest-exec-status"] = R"({"return": {"exited": false}})";
  std::vector<std::string> started;
  const auto scripted = hypervisor.agent;
  hypervisor.agent = [&](const std::string& command) {
    const Json request = Json::parse(command);
    if (request["execute"] == "guest-exec") {
      started.push_back(request["arguments"]["path"].get<std::string>() +
                        request["arguments"]["arg"].dump());
    }
    return scripted(command);
  };
  EXPECT_THROW(agent(1).run("/bin/sleep", {"9"}), AgentUnavailable);
  EXPECT_THAT(started, testing::ElementsAre(R"(/bin/sleep["9"])", R"(/bin/kill["-KILL","77"])"));
}

TEST_F(AgentTest, RefusesOutputThatIsTooLong) {
  // Four letters are three bytes.
  const std::size_t most = (std::size_t{1} << 20U) / 3 * 4;
  for (const char* stream : {"out-data", "err-data"}) {
    const auto run = [&](std::size_t letters) {
      answers["guest-exec-status"] =
          std::string(R"({"return": {"exited": true, "exitcode": 0, ")") + stream + "\": \"" +
          std::string(letters, 'A') + "\"}}";
      return agent().run("/bin/cat", {"/dev/zero"});
    };
    EXPECT_EQ(run(most).exitCode, 0) << stream;
    EXPECT_THROW(run(most + 4), AgentUnavailable) << stream;
  }
}

TEST(FirstLine, IsBoundedAndPrintable) {
  EXPECT_EQ(firstLine("one\ntwo\n"), "one");
  EXPECT_EQ(firstLine("\x1b]0;owned\x07").find_first_of("\x1b\x07"), std::string::npos);
  EXPECT_EQ(firstLine(std::string(100000, 'a')).size(), 200U);
}

TEST_F(AgentTest, RejectsMalformedReplies) {
  std::string deep(100000, '[');
  const std::string nested = R"({"return": {"exited": true, "exitcode": 0, "x": )" +
                             std::string(40, '[') + std::string(40, ']') + "}}";
  for (const std::string& answer :
       {std::string("garbage"), deep, nested, std::string("{\"return\": 7}"), std::string("[]"),
        std::string(R"({"return": {"exited": true, "out-data": "not base64!"}})"),
        std::string(R"({"return": {"exited": true, "exitcode": 1, "exitcode": 0}})"),
        std::string(R"({"return": {"exited": true}, "return": {"exited": true}})"),
        std::string(R"({"return": {"exited": "yes"}})")}) {
    answers["guest-exec-status"] = answer;
    EXPECT_THROW(agent(1).run("/bin/true", {}), Error) << answer.substr(0, 40);
  }
}

TEST_F(AgentTest, ReportsSignalAsShellsDo) {
  answers["guest-exec-status"] = R"({"return": {"exited": true, "signal": 9}})";
  EXPECT_EQ(agent().run("/bin/true", {}).exitCode, 137);
}

// 4294967296 becomes 0 in an int, and 128 + 2147483647 overflows.
TEST_F(AgentTest, ImpossibleExitStatusAndSignalAreFailures) {
  for (const char* status :
       {R"("exitcode": 4294967296)", R"("exitcode": 256)", R"("exitcode": -1)",
        R"("exitcode": 18446744073709551615)", R"("exitcode": 0.0)", R"("exitcode": "0")",
        R"("signal": 2147483647)", R"("signal": 9223372036854775807)", R"("signal": -128)",
        R"("signal": 18446744073709551488)", R"("exitcode": -5, "signal": 2147483647)",
        R"("signal": 65)", R"("signal": null)"}) {
    answers["guest-exec-status"] = std::string(R"({"return": {"exited": true, )") + status + "}}";
    EXPECT_EQ(agent().run("/bin/true", {}).exitCode, unknownExitCode) << status;
  }
}

TEST_F(AgentTest, ImpossibleProcessIdIsRefused) {
  for (const char* pid : {"0", "-1", "18446744073709551615", "9223372036854775808"}) {
    answers["guest-exec"] = std::string(R"({"return": {"pid": )") + pid + "}}";
    EXPECT_THROW(agent().run("/bin/true", {}), AgentUnavailable) << pid;
  }
}

/// An agent that leaves every command unanswered until the test ends.
class MuteAgentTest : public AgentTest {
 protected:
  MuteAgentTest() {
    hypervisor.agent = [this, released = release.get_future().share()](const std::string&) {
      ++asked;
      released.wait();
      return std::string(R"({"return": {}})");
    };
  }
  ~MuteAgentTest() override {
    release.set_value();
    while (callsInProgress != 0) {
      std::this_thread::yield();
    }
  }

  std::promise<void> release;
  std::atomic<int> asked = 0;
};

TEST_F(MuteAgentTest, StopRequestEndsTheWaitForReply) {
  bool stop = false;
  Agent agent(hypervisor, Uuid{}, "train0", std::chrono::seconds(600), [&] {
    if (asked == 1 && !std::exchange(stop, true)) {
      throw std::runtime_error("stopped");
    }
  });
  EXPECT_THROW(agent.call("guest-ping"), std::runtime_error);
  const auto began = std::chrono::steady_clock::now();
  agent.startAndForget("/bin/kill", {"-KILL", "1"});
  agent.startAndForget("/bin/rm", {"-rf", "/x"});
  EXPECT_LT(std::chrono::steady_clock::now() - began, deadlines::agentCleanup);
  while (asked < 3) {  // libvirt gets the cleanup, and has it started when the agent answers
    std::this_thread::yield();
  }
}

TEST_F(AgentTest, CountsAddressAndMasterButNotLinkLocalAddressAsUse) {
  answers["guest-network-get-interfaces"] = R"({"return": [
    {"name": "eth1", "hardware-address": "52:54:00:AA:bb:cc", "ip-addresses": [
      {"ip-address": "192.168.100.10", "ip-address-type": "ipv4", "prefix": 24},
      {"ip-address": "fe80::1", "ip-address-type": "ipv6", "prefix": 64}]},
    {"name": "eth0", "hardware-address": "52:54:00:00:00:01", "ip-addresses": [
      {"ip-address": "10.0.0.1", "ip-address-type": "ipv4", "prefix": 8}]}]})";
  setOutput("bmV0ZGV2IGV0aDEKbWFzdGVyIGJvbmQwCg==");  // netdev eth1, master bond0
  auto guest = agent();
  const auto use = findUsers(guest, lease());
  EXPECT_THAT(use.users, UnorderedElementsAre("interface eth1 has address 192.168.100.10",
                                              "its interface belongs to bond0"));
  EXPECT_TRUE(use.notObservable.empty());
}

TEST_F(AgentTest, ReportsProcessWithOpenRdmaDeviceOnceAndEscaped) {
  // netdev eth1, verbs uverbs0, process 12 ib_write_bw twice, process 13 with an escape character
  setOutput(
      "bmV0ZGV2IGV0aDEKdmVyYnMgdXZlcmJzMApwcm9jZXNzIDEyIGliX3dyaXRlX2J3CnByb2Nlc3MgMTIgaWJfd3Jpd"
      "GVfYncKcHJvY2VzcyAxMyAbWzJKCg==");
  auto guest = agent();
  const auto use = findUsers(guest, lease());
  ASSERT_EQ(use.users.size(), 2U);
  EXPECT_EQ(use.users[0], "process 12 ib_write_bw has its RDMA device open");
  EXPECT_EQ(use.users[1].find('\x1b'), std::string::npos);
}

TEST_F(AgentTest, ReportsDeviceUseThatIsNotObservable) {
  auto guest = agent();
  EXPECT_THAT(findUsers(guest, lease()).notObservable,
              testing::ElementsAre(HasSubstr("no network driver in the guest")));
  hypervisor.agent = nullptr;
  auto silent = agent();
  EXPECT_EQ(findUsers(silent, lease()).notObservable.size(), 2U);
  EXPECT_THAT(findUsers(silent, Lease{}).notObservable,
              testing::ElementsAre(testing::HasSubstr("a VF whose lease records no MAC")));
}

}  // namespace
}  // namespace vfpass::agent
