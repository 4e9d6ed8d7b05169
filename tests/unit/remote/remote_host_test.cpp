#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "fake/fake_hypervisor.hpp"
#include "fake/temporary_folder.hpp"
#include "vfpass/base/call_within.hpp"
#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/json_reader.hpp"
#include "vfpass/error.hpp"
#include "vfpass/remote/remote_host.hpp"

namespace vfpass::remote {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Uuid domain = *parseUuid("0f5e9a3c-1111-4222-8333-944455566677");

verify::HostSide hostSide() {
  verify::HostSide side;
  side.vendor = 0x15b3;
  side.device = 0x101e;
  side.link = {16000, 16};
  side.portRate = 200000;
  side.guestMtu = 9000;
  side.hold = {true, "vfio-pci", true, "process 42 (qemu-system-x86_64)"};
  side.guestPath = {*parsePciAddress("0000:00:01.0"), *parsePciAddress("0000:01:00.0")};
  side.degraded = "the link of 0000:03:00.0 runs at Gen3 x4 of Gen4 x16";
  return side;
}

Observation observation() {
  verify::LeasedGpu gpu;
  gpu.entry = "gpu0";
  gpu.guestPath = {*parsePciAddress("0000:00:02.0")};
  gpu.paths["rail0"] = {{32000, 16}, true, "PHB", "PIX", {16000, 8}, "slow"};
  verify::HostPlacement placement;
  placement.devices = {{"gpu0", 1}, {"rail0", 0}};
  placement.hostNodes = 2;
  placement.vcpuNodes = {0, 1};
  placement.guestCells = true;
  return {"boot", NvlinkMode::partition, {gpu}, placement};
}

// Both sides of the protocol, without ssh between them.
class RemoteHostTest : public testing::Test {
 protected:
  RemoteHost connect() {
    return {"host2", [this](const std::string& line) { return replyTo(line, served); }, domain};
  }
  std::string errorWithReply(const std::string& reply) {
    try {
      const RemoteHost host(
          "host2", [&](const std::string&) { return reply; }, domain);
      return "no error";
    } catch (const Error& error) {
      return std::string(error.what()) + "|" + error.remedy();
    }
  }

  Uuid asked;
  ServedHost served{[this](const Uuid& uuid) {
                      asked = uuid;
                      return observation();
                    },
                    [](const std::string&) { return hostSide(); },
                    [](const std::string& entry) -> std::optional<VfTraffic> {
                      if (entry == "rail0") {
                        return VfTraffic{1, 2, 3, 1ULL << 60U};
                      }
                      return std::nullopt;
                    },
                    [](const std::string&) {
                      return std::optional(VfTraffic{5, 6, 0, 0});
                    }};
};

TEST_F(RemoteHostTest, ObservationsArriveUnchanged) {
  const RemoteHost host = connect();
  EXPECT_EQ(asked, domain);
  EXPECT_EQ(host.observation().bootId, "boot");
  EXPECT_EQ(host.observation().nvlink, NvlinkMode::partition);
  ASSERT_EQ(host.observation().gpus.size(), 1U);
  const auto& gpu = host.observation().gpus[0];
  EXPECT_EQ(gpu.entry, "gpu0");
  EXPECT_THAT(gpu.guestPath, ElementsAre(*parsePciAddress("0000:00:02.0")));
  const auto& path = gpu.paths.at("rail0");
  EXPECT_EQ(path.link, (PcieLink{32000, 16}));
  EXPECT_TRUE(path.throughRootComplex);
  EXPECT_EQ(path.distance + " " + path.inXml + " " + path.degraded, "PHB PIX slow");
  EXPECT_EQ(path.nic, (PcieLink{16000, 8}));

  const auto& placement = host.observation().placement;
  ASSERT_TRUE(placement);
  ASSERT_EQ(placement->devices.size(), 2U);
  EXPECT_EQ(placement->devices[0].entry, "gpu0");
  EXPECT_EQ(placement->devices[0].node, 1U);
  EXPECT_EQ(placement->hostNodes, 2U);
  EXPECT_EQ(placement->vcpuNodes, (std::set<unsigned>{0, 1}));
  EXPECT_EQ(placement->memoryNodes, std::nullopt);
  EXPECT_TRUE(placement->guestCells && !placement->automatic);

  const auto side = host.host("rail0");
  EXPECT_EQ(toJson(side), toJson(hostSide()));
  EXPECT_EQ(side.hold.holder, "process 42 (qemu-system-x86_64)");
  EXPECT_EQ(side.guestMtu, 9000U);
  EXPECT_EQ(side.degraded, hostSide().degraded);
  EXPECT_EQ(host.traffic("rail0"), (VfTraffic{1, 2, 3, 1ULL << 60U}));
  EXPECT_EQ(host.traffic("rail1"), std::nullopt);
  EXPECT_EQ(host.rdma("rail0"), (VfTraffic{5, 6, 0, 0}));
}

// Of the same protocolVersion: it takes the question for one about traffic.
TEST_F(RemoteHostTest, EarlierVfpassRefusesTheQuestionAboutRdma) {
  const RemoteHost host(
      "host2",
      [this](const std::string& line) {
        return line.find("rdma") == std::string::npos
                   ? replyTo(line, served)
                   : R"({"error": "invalid request", "remedy": ""})";
      },
      domain);
  EXPECT_THROW(static_cast<void>(host.rdma("rail0")), Error);
  EXPECT_EQ(host.traffic("rail1"), std::nullopt) << "the connection goes on";
}

TEST_F(RemoteHostTest, ErrorOfTheOtherHostKeepsMessageAndRemedy) {
  served.describe = [](const Uuid&) -> Observation {
    throw Error("domain train1 is not running", "run `virsh start train1`");
  };
  try {
    connect();
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "host2: domain train1 is not running");
    EXPECT_EQ(error.remedy(), "run `virsh start train1`");
  }
}

TEST_F(RemoteHostTest, MalformedReplyIsAnError) {
  for (
      const char* reply :
      {"", "Welcome to host2!", "[]", "{}", R"({"version": 2, "boot_id": 7})", "null",
       R"({"version":2,"boot_id":"b","nvlink":"warp","gpus":[]})",
       R"({"version":2,"boot_id":"b","nvlink":null,"gpus":[{"entry":"g","guest_path":["x"],"paths":{}}]})",
       R"({"error": 7})"}) {
    EXPECT_THAT(errorWithReply(reply), HasSubstr("host2: invalid reply")) << reply;
  }
}

// Hosts are upgraded one after another. The reply has nothing else that is wrong.
TEST_F(RemoteHostTest, RefusesReplyOfAnotherProtocolVersion) {
  auto reply = toJson(observation());
  for (const int version : {1, 3}) {
    reply["version"] = version;
    try {
      const RemoteHost host(
          "host2", [&](const std::string&) { return reply.dump(); }, domain);
      FAIL() << version;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()),
                "host2: the two versions of vfpass cannot work together: protocol 2 and " +
                    std::to_string(version));
      EXPECT_EQ(error.remedy(), "install the same version of vfpass on both hosts");
    }
  }
}

TEST_F(RemoteHostTest, ReplyOfEarlierVfpassHasNoPlacement) {
  auto reply = toJson(observation());
  reply.erase("placement");
  const RemoteHost host(
      "host2", [&](const std::string&) { return reply.dump(); }, domain);
  EXPECT_EQ(host.observation().bootId, "boot");
  EXPECT_FALSE(host.observation().placement);
}

// A later one adds members without a new version of the protocol only if they can be ignored.
TEST_F(RemoteHostTest, IgnoresMembersOfLaterVfpassWithSameProtocol) {
  auto reply = toJson(observation());
  for (const char* place : {"", "/gpus/0", "/gpus/0/paths/rail0", "/placement"}) {
    reply[nlohmann::json::json_pointer(std::string(place) + "/later")] = 7;
  }
  EXPECT_EQ(errorWithReply(reply.dump()), "no error");
  auto side = toJson(hostSide());
  side["later"] = 7;
  side["hold"]["later"] = 7;
  bool first = true;
  const RemoteHost host(
      "host2",
      [&](const std::string&) { return std::exchange(first, false) ? reply.dump() : side.dump(); },
      domain);
  EXPECT_EQ(toJson(host.host("rail0")), toJson(hostSide()));
}

TEST_F(RemoteHostTest, PlacementIsBounded) {
  auto whole = toJson(observation());
  EXPECT_EQ(errorWithReply(whole.dump()), "no error");
  const auto error = [&](const std::string& place, const nlohmann::json& value) {
    auto reply = whole;
    reply[nlohmann::json::json_pointer("/placement" + place)] = value;
    return errorWithReply(reply.dump());
  };
  EXPECT_EQ(error("/vcpu_nodes", nullptr), "no error");
  for (const auto& [place, value] : std::vector<std::pair<std::string, nlohmann::json>>{
           {"", 7},
           {"/host_nodes", -1},
           {"/host_nodes", 1025},
           {"/devices/0/node", 1024},
           {"/devices/0/entry", "\u001b[2J"},
           {"/devices/0/entry", std::string(256, 'x')},
           {"/vcpu_nodes", {1, 1024}},
           {"/memory_nodes", {1024}},
           {"/memory_nodes", "all"},
           {"/devices", nlohmann::json::array_t(1025, {{"entry", "x"}, {"node", 0}})}}) {
    EXPECT_THAT(error(place, value), HasSubstr("host2: invalid reply")) << place << " " << value;
  }
}

TEST_F(RemoteHostTest, NumberOutOfRangeIsAnError) {
  const auto whole = toJson(hostSide());
  EXPECT_EQ(readHostSide(JsonReader(whole)).portRate, 200000U);
  for (const char* name : {"vendor", "device", "port_rate", "guest_mtu"}) {
    for (const char* number : {"-1", "4294967296", "1.5", "1e300", "true"}) {
      auto changed = whole;
      changed[name] = nlohmann::json::parse(number);
      EXPECT_THROW(readHostSide(JsonReader(changed)), std::exception) << name << " " << number;
    }
  }
  auto wide = whole;
  wide["vendor"] = 65536U;
  EXPECT_THROW(readHostSide(JsonReader(wide)), std::exception);
  auto counters = toJson(std::optional(VfTraffic{1, 2, 3, 4}));
  counters["sent_bytes"] = -1;
  EXPECT_THROW(readTraffic(JsonReader(counters)), std::exception);
}

TEST_F(RemoteHostTest, LongOrDeepReplyIsAnError) {
  EXPECT_THAT(errorWithReply("\"" + std::string(2U << 20U, 'x') + "\""),
              HasSubstr("invalid reply"));
  EXPECT_THAT(errorWithReply(std::string(1000, '[') + std::string(1000, ']')),
              HasSubstr("invalid reply"));
}

TEST_F(RemoteHostTest, ControlCharactersOfTheOtherHostAreEscaped) {
  EXPECT_THAT(errorWithReply(R"({"error": "\u001b[2J", "remedy": "\u0007"})"),
              testing::Not(testing::AnyOf(HasSubstr("\x1b"), HasSubstr("\x07"))));
}

TEST_F(RemoteHostTest, RefusesRequestsThatItDoesNotUnderstand) {
  EXPECT_THAT(
      replyTo(R"({"version": 99, "domain": "0f5e9a3c-1111-4222-8333-944455566677"})", served),
      testing::AllOf(HasSubstr("protocol 2 and 99"), HasSubstr("same version")));
  for (const char* request :
       {"", "{}", "[1]", R"({"host": 7})", R"({"version": 2, "domain": "x"})"}) {
    EXPECT_THAT(replyTo(request, served), HasSubstr("invalid request")) << request;
  }
  EXPECT_THAT(replyTo(R"({"host": ")" + std::string(10000, 'x') + "\"}", served),
              HasSubstr("invalid request"));
}

using std::chrono::milliseconds;
using std::chrono::seconds;

const Deadline soon(seconds(600));

// As libvirt's client: connects to the socket of the URI, and waits for the other side's greeting.
std::unique_ptr<Hypervisor> connectAsLibvirt(const std::string& uri) {
  const std::string path = uri.substr(uri.find("socket=") + 7);
  const FileDescriptor client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (::connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    throw Error("cannot connect to " + path);
  }
  char letter = 0;
  if (::read(client.get(), &letter, 1) != 1) {
    throw Error("End of file while reading data");
  }
  return std::make_unique<fake::FakeHypervisor>();
}

/// A program `ssh` in front of PATH.
class RemoteLibvirtTest : public testing::Test {
 protected:
  RemoteLibvirtTest() : path_(std::getenv("PATH")) {
    ::setenv("PATH", (folder.path().string() + ":" + path_).c_str(), 1);
  }
  ~RemoteLibvirtTest() override {
    ::setenv("PATH", path_.c_str(), 1);
    while (callsInProgress != 0) {  // ends because ssh ends
      std::this_thread::yield();
    }
  }

  void ssh(const std::string& script) {
    std::ofstream(folder.path() / "ssh") << "#!/bin/sh\necho $$ >" << pidFile().string() << '\n'
                                         << script << '\n';
    std::filesystem::permissions(folder.path() / "ssh", std::filesystem::perms::owner_all);
  }
  [[nodiscard]] std::filesystem::path pidFile() const { return folder.path() / "pid"; }
  [[nodiscard]] bool sshIsRunning() const {
    pid_t pid = 0;
    std::ifstream(pidFile()) >> pid;
    return pid > 0 && ::kill(pid, 0) == 0;
  }
  std::string errorOf(const Deadline& deadline, const RemoteLibvirt::Checkpoint& checkpoint) {
    try {
      const RemoteLibvirt libvirt(place, connectAsLibvirt, deadline, checkpoint);
      return "connected";
    } catch (const Error& error) {
      return error.what();
    }
  }

  fake::TemporaryFolder folder;
  PeerPlace place = parsePeer({"host2:train1"});

 private:
  std::string path_;
};

TEST_F(RemoteLibvirtTest, ConnectsThroughSshAndEndsIt) {
  ssh("printf x; exec cat");
  {
    const RemoteLibvirt libvirt(place, connectAsLibvirt, soon, [] {});
    EXPECT_EQ(libvirt.findDomain("train1", soon), std::nullopt);
    EXPECT_TRUE(sshIsRunning());
  }
  EXPECT_FALSE(sshIsRunning());
}

TEST_F(RemoteLibvirtTest, SshThatNeverAnswersEndsWithTheDeadline) {
  ssh("trap '' TERM; while :; do sleep 1; done");
  EXPECT_EQ(errorOf(Deadline(milliseconds(1000)), [] {}), "libvirt of host2: no reply within 1 s");
  EXPECT_FALSE(sshIsRunning());
}

TEST_F(RemoteLibvirtTest, CheckpointEndsTheWait) {
  ssh("trap '' TERM HUP INT; while :; do sleep 1; done");
  const auto stopWhenStarted = [this] {
    if (sshIsRunning()) {
      throw std::runtime_error("stopped");
    }
  };
  EXPECT_THROW(RemoteLibvirt(place, connectAsLibvirt, soon, stopWhenStarted), std::runtime_error);
  EXPECT_FALSE(sshIsRunning());
}

TEST_F(RemoteLibvirtTest, ReasonOfSshIsReported) {
  ssh("echo 'Permission denied (publickey).' >&2; exit 255");
  EXPECT_EQ(errorOf(soon, [] {}),
            "cannot connect to libvirt of host2: ssh: Permission denied (publickey).");
}

TEST_F(RemoteLibvirtTest, FloodOfMessagesEndsTheConnection) {
  ssh("exec yes >&2");
  EXPECT_EQ(errorOf(soon, [] {}),
            "cannot connect to libvirt of host2: ssh: it wrote more than 1 MiB of messages");
  EXPECT_FALSE(sshIsRunning());
}

TEST_F(RemoteLibvirtTest, OtherTransportThatNeverAnswersEndsWithTheDeadline) {
  place = parsePeer({"qemu+tls://host2/system", "train1"});
  std::promise<void> release;
  const auto hang = [released = release.get_future().share()](const std::string&) {
    released.wait();
    return std::unique_ptr<Hypervisor>();
  };
  EXPECT_THROW(RemoteLibvirt(place, hang, Deadline(milliseconds(100)), [] {}), Error);
  release.set_value();
}

}  // namespace

}  // namespace vfpass::remote
