#include "system/guest_inventory.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "hosts/sysfs_tree.hpp"

namespace vfpass::probe {
namespace {

using Json = nlohmann::json;

class MemoryLockTest : public testing::Test {
 protected:
  [[nodiscard]] Json read() const { return readMemoryLock(SysfsReader(tree.path())); }
  [[nodiscard]] Json login(const std::string& content) const {
    tree.file("etc/security/limits.conf", content);
    return read().at("login");
  }
  [[nodiscard]] Json services(const std::string& content) const {
    tree.file("etc/systemd/system.conf", content);
    return read().at("services");
  }

  hosts::SysfsTree tree;
};

TEST_F(MemoryLockTest, NothingIsSet) {
  EXPECT_EQ(read(), Json::parse(R"({"login": null, "login_others": [], "services": null,
                                    "user_services": null, "memory_bytes": null})"));
}

TEST_F(MemoryLockTest, ReadsPam) {
  EXPECT_EQ(login("* soft memlock unlimited\n* hard memlock unlimited # all\n"),
            Json::parse(R"({"soft": null, "hard": null, "file": "/etc/security/limits.conf"})"));
  EXPECT_EQ(login("*\t-\tmemlock\t64\n").at("soft"), 65536);
  EXPECT_EQ(login("* soft memlock unlimited\n* hard memlock 64\n").at("soft"), 65536);
  EXPECT_FALSE(login("* hard memlock -1\n").contains("soft"));
  for (const char* other : {"#* - memlock 64\n", "* - nofile 64\n", "* - memlock\n",
                            "* x memlock 6", "* - memlock 6x\n", "root - memlock unlimited\n"}) {
    EXPECT_EQ(login(other), nullptr) << other;
  }
  EXPECT_EQ(login("* - memlock 18446744073709551615\n").at("soft"), nullptr) << "no overflow";
}

TEST_F(MemoryLockTest, LaterFilesOfPamCount) {
  tree.file("etc/security/limits.d/10-a.conf", "* - memlock 1\n@rdma - memlock unlimited\n");
  tree.file("etc/security/limits.d/90-b.conf", "* - memlock 2\n");
  tree.file("etc/security/limits.d/99-c.txt", "* - memlock 3\n");
  EXPECT_EQ(login("* - memlock 4\n"), Json::parse(R"({"soft": 2048, "hard": 2048,
                            "file": "/etc/security/limits.d/90-b.conf"})"));
  const Json others = read().at("login_others");
  ASSERT_EQ(others.size(), 1U);
  EXPECT_EQ(others[0].at("who"), "@rdma");
  EXPECT_EQ(others[0].at("soft"), nullptr);
}

TEST_F(MemoryLockTest, ReadsSystemd) {
  const std::pair<const char*, Json> values[] = {{"infinity", nullptr},
                                                 {"8M", 8388608},
                                                 {"65536", 65536},
                                                 {"1GB", 1073741824},
                                                 {"4K:1G", 4096}};
  for (const auto& [text, soft] : values) {
    EXPECT_EQ(services(std::string("[Manager]\nDefaultLimitMEMLOCK = ") + text + "\n").at("soft"),
              soft)
        << text;
  }
  for (const char* odd : {"#DefaultLimitMEMLOCK=8M\n", "DefaultLimitMEMLOCK=x\n", "M\n",
                          "DefaultLimitMEMLOCK=\n", "DefaultLimitMEMLOCK=M\n"}) {
    EXPECT_EQ(services(odd), nullptr) << odd;
  }
}

TEST_F(MemoryLockTest, DropInsOfSystemdCount) {
  tree.file("usr/lib/systemd/system.conf.d/50-a.conf", "DefaultLimitMEMLOCK=1M\n");
  tree.file("usr/lib/systemd/system.conf.d/60-b.conf", "DefaultLimitMEMLOCK=2M\n");
  tree.file("etc/systemd/system.conf.d/60-b.conf", "\n");
  EXPECT_EQ(services("DefaultLimitMEMLOCK=3M\n").at("soft"), 1048576)
      << "the file in /etc hides the one of the same name";
  tree.file("etc/systemd/user.conf", "DefaultLimitMEMLOCK=infinity\n");
  EXPECT_EQ(read().at("user_services").at("file"), "/etc/systemd/user.conf");
}

TEST_F(MemoryLockTest, ReadsMemory) {
  tree.file("proc/meminfo", "MemTotal:       16316412 kB\nMemFree: 1 kB\n");
  EXPECT_EQ(read().at("memory_bytes"), 16708005888U);
}

TEST_F(MemoryLockTest, BoundsNamedUsers) {
  std::string lines;
  for (int user = 0; user < 100; ++user) {
    lines += "u" + std::to_string(user) + " - memlock 64\n";
  }
  EXPECT_EQ(login(lines), nullptr);
  EXPECT_EQ(read().at("login_others").size(), 16U);
}

}  // namespace
}  // namespace vfpass::probe
