#include "vfpass/remote/remote_host.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "fake/fake_hypervisor.hpp"
#include "fake/temporary_folder.hpp"
#include "vfpass/base/call_within.hpp"
#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/error.hpp"

namespace vfpass::remote {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

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
