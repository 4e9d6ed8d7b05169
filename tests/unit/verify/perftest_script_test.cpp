#include "guest_tools.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "fake/temporary_folder.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::verify {
namespace {

using testing::HasSubstr;
using testing::Not;

// Like perftest: a server without an address, a client with one. Both write what they do to the
// file $LOG.
constexpr const char* perftest = R"(#!/usr/bin/env python3
import os, socket, sys
port = int(sys.argv[sys.argv.index("-p") + 1])
client = sys.argv[-1] == "127.0.0.1"
def log(text):
    with open(os.environ["LOG"], "a") as file:
        file.write(text + "\n")
if client:
    log("client %d" % port)
    socket.create_connection(("127.0.0.1", port)).recv(1)
    print("figure")
else:
    log("server %d" % port)
    if "--broken" in sys.argv:
        sys.exit("no such device")
    listener = socket.create_server(("", port))
    listener.accept()[0].send(b"x")
)";

/// Runs the script as the guest does, as root in a network of its own.
class PerftestScriptTest : public testing::Test {
 protected:
  PerftestScriptTest() {
    std::ofstream(program()) << perftest;
    std::filesystem::permissions(program(), std::filesystem::perms::owner_all);
    std::ofstream(folder.path() / "script") << perftestScript;
  }

  [[nodiscard]] std::filesystem::path program() const { return folder.path() / "ib_write_bw"; }
  [[nodiscard]] std::string read(const char* name) const {
    std::ostringstream text;
    text << std::ifstream(folder.path() / name).rdbuf();
    return text.str();
  }

  // `before`: shell commands that prepare the network.
  int run(const std::string& ports, const std::string& before = "",
          const std::string& arguments = "") {
    const std::string user = ::geteuid() == 0 ? "" : " --user --map-root-user";
    const std::string here = folder.path().string();
    std::ofstream(folder.path() / "guest")
        << "ip link set lo up\n"
        << before << "\nexport LOG=" << here << "/log\nlimit=20 ports='" << ports << "'\n. " << here
        << "/script >" << here << "/output\n";
    const std::string command =
        "unshare --net" + user + " sh " + here + "/guest " + program().string() + " " + arguments;
    return WEXITSTATUS(std::system(command.c_str()));
  }

  fake::TemporaryFolder folder;
};

TEST_F(PerftestScriptTest, ClientTalksToOurServer) {
  EXPECT_EQ(run("700"), 0) << read("output");
  EXPECT_EQ(read("output"), "figure\n");
  EXPECT_EQ(read("log"), "server 700\nclient 700\n");
}

TEST_F(PerftestScriptTest, UsesNoPortOnWhichSomebodyListens) {
  const std::string listens = (folder.path() / "listens").string();
  const std::string taken =
      "rm -f " + listens +
      "\npython3 -c \"import socket, time; s = socket.create_server(('127.0.0.1', 700)); open('" +
      listens + "', 'w'); time.sleep(600)\" &\nother=$!\ntrap 'kill $other' EXIT\nwhile [ ! -e " +
      listens + " ]; do sleep 0.05; done";
  EXPECT_EQ(run("700 701", taken), 0) << read("output");
  EXPECT_EQ(read("log"), "server 701\nclient 701\n");
  EXPECT_EQ(run("700", taken), 1);
  EXPECT_EQ(read("output"), "no free port\n");
}

TEST_F(PerftestScriptTest, RefusesPortsOnWhichEveryUserCanListen) {
  EXPECT_EQ(run("700", "echo 512 >/proc/sys/net/ipv4/ip_unprivileged_port_start"), 1);
  EXPECT_THAT(read("output"), HasSubstr("ip_unprivileged_port_start"));
  EXPECT_EQ(read("log"), "") << "nothing was started";
}

TEST_F(PerftestScriptTest, StartsNoClientWithoutServer) {
  EXPECT_EQ(run("700", "", "--broken"), 1);
  EXPECT_EQ(read("output"), "no such device\n");
  EXPECT_THAT(read("log"), Not(HasSubstr("client")));
}

TEST(RandomPorts, ArePrivilegedAndDiffer) {
  std::set<std::vector<std::string>> lists;
  for (int i = 0; i < 20; ++i) {
    const auto ports = randomPorts();
    EXPECT_GE(ports.size(), 3U);
    for (const std::string& port : ports) {
      EXPECT_GE(parseNumber(port).value_or(0), 512U);
      EXPECT_LT(parseNumber(port).value_or(9999), 1024U);
    }
    lists.insert(ports);
  }
  EXPECT_EQ(lists.size(), 20U);
}

}  // namespace
}  // namespace vfpass::verify
