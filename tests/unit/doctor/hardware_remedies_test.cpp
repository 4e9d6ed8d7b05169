#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>

#include <array>

#include "doctored_host.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
namespace {

struct Ran {
  int status = 0;
  std::string output;
};

Ran run(const std::string& command) {
  Ran ran;
  FILE* pipe = ::popen(("exec 2>&1 </dev/null; " + command).c_str(), "r");
  std::array<char, 4096> buffer{};
  while (const std::size_t length = ::fread(buffer.data(), 1, buffer.size(), pipe)) {
    ran.output.append(buffer.data(), length);
  }
  ran.status = ::pclose(pipe);
  return ran;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const auto at = text.find(begin) + begin.size();
  return text.substr(at, text.find(end, at) - at);
}

std::string beforeThen(const std::string& remedy) {
  return remedy.substr(0, remedy.find(", then "));
}

/// Runs remedies of doctor on real files, and has them parsed by the programs that own the files.
class HardwareRemedies : public testing::Test, public DoctoredHost {
 protected:
  /// Runs a remedy's command on the tree instead of on this machine.
  void runInTree(const std::string& command) const {
    const std::string root = tree.path().string();
    const Ran ran = run(replaced(replaced(command, " /etc/", " " + root + "/etc/"), " /sys/",
                                 " " + root + "/sys/"));
    ASSERT_EQ(ran.status, 0) << command << ": " << ran.output;
  }
};

// --- the kernel command line, through /etc/default/grub and GRUB's shell

constexpr unsigned sixBits = 0x5f;

std::string acsConfig(unsigned enabled) {
  std::string config(4096, '\0');
  config[0x100] = 0x0d;
  config[0x102] = 0x01;
  config[0x104] = static_cast<char>(sixBits);
  config[0x106] = static_cast<char>(enabled);
  return config;
}

/// The host of the remedy for `acs`, on one distribution.
class AcsArgument : public HardwareRemedies, public testing::WithParamInterface<std::string> {
 protected:
  AcsArgument() {
    file("etc/os-release", "NAME=x\nID=" + GetParam() + "\nVERSION_ID=1\n");
    for (const std::size_t port : {rootPort, nicPort, gpuPort}) {
      file(port, "config", acsConfig(0));
    }
    file("default-grub",
         "GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\n"
         "GRUB_CMDLINE_LINUX=\"console=ttyS0\"\n" +
             between(finding("acs").remedy, "`", "`") + "\n");
  }
  /// grub.cfg, written as /etc/grub.d/10_linux does.
  [[nodiscard]] std::string grubScript() const {
    return run("cd '" + tree.path().string() +
               "' && . ./default-grub && cat <<EOF\nlinux /vmlinuz root=/dev/sda1 ro "
               "${GRUB_CMDLINE_LINUX} ${GRUB_CMDLINE_LINUX_DEFAULT}\nEOF\n")
        .output;
  }
  /// Whether GRUB's parser accepts the script with a keyword after each semicolon. It does only if
  /// the semicolon does not end a command.
  [[nodiscard]] bool keepsSemicolons(const std::string& script) const {
    file("grub.cfg", replaced(script, ";", ";fi "));
    return run("grub-script-check '" + (tree.path() / "grub.cfg").string() + "'").status == 0;
  }
  /// What the kernel does with the argument: x leaves a bit (__pci_config_acs in pci.c).
  void boot(const std::string& argument) {
    for (const std::string& part : split(argument)) {
      unsigned enabled = 0;
      for (const char bit : part.substr(0, 7)) {
        enabled = enabled << 1U | (bit == '1' ? 1U : 0U);
      }
      for (const std::size_t port : {rootPort, nicPort, gpuPort}) {
        if (toString(function(port).address) == part.substr(8)) {
          file(port, "config", acsConfig(enabled));
        }
      }
    }
  }
  static std::vector<std::string> split(const std::string& argument) {
    return splitLines(replaced(argument, ";", "\n"));
  }
};

TEST_P(AcsArgument, ReachesKernelThroughGrub) {
  const std::string script = grubScript();
  EXPECT_THAT(script, testing::HasSubstr("console=ttyS0"));
  EXPECT_THAT(script, testing::HasSubstr("quiet"));
  EXPECT_TRUE(keepsSemicolons(script)) << script;
  EXPECT_FALSE(keepsSemicolons(replaced(script, "\"", ""))) << "the quotes are needed";
  EXPECT_EQ(outcome("acs"), Outcome::failed);
  boot(between(script, "\"pci=config_acs=", "\""));
  EXPECT_EQ(finding("acs").outcome, Outcome::passed) << finding("acs").seen;
}

INSTANTIATE_TEST_SUITE_P(Distributions, AcsArgument,
                         testing::Values("debian", "ubuntu", "sles", "\"opensuse-leap\""));

// grubby copies an argument into /etc/default/grub between quotes, which end at those within it.
TEST_F(HardwareRemedies, UseNoGrubbyForArgumentWithSemicolon) {
  file("etc/os-release", "ID=rocky\nID_LIKE=\"rhel centos fedora\"\n");
  for (const std::size_t port : {rootPort, nicPort, gpuPort}) {
    file(port, "config", acsConfig(0));
  }
  EXPECT_THAT(finding("acs").remedy, testing::Not(testing::HasSubstr("grubby")));
  EXPECT_EQ(finding("iommu").remedy,
            "enable VT-d in the firmware, then grubby --update-kernel=ALL --args=intel_iommu=on, "
            "then reboot");
  file("proc/cmdline", "quiet intel_iommu=off\n");
  EXPECT_EQ(finding("iommu").remedy,
            "grubby --update-kernel=ALL --remove-args='intel_iommu=off', then reboot");
}

TEST_F(HardwareRemedies, NameTheBootLoaderOfTheDistribution) {
  const auto remedyOn = [&](const std::string& release) {
    file("etc/os-release", release);
    return finding("iommu").remedy;
  };
  EXPECT_THAT(remedyOn("ID=debian\n"), testing::HasSubstr("run update-grub and reboot"));
  EXPECT_THAT(remedyOn("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n"),
              testing::HasSubstr("run update-grub and reboot"));
  EXPECT_THAT(remedyOn("ID=\"sles\"\nID_LIKE=\"suse\"\n"),
              testing::HasSubstr("run grub2-mkconfig -o /boot/grub2/grub.cfg and reboot"));
  EXPECT_THAT(remedyOn("ID=fedora\n"), testing::HasSubstr("grubby"));
  for (const char* other : {"ID=arch\n", "", "ID\n", "ID=\n", "PRETTY_NAME=debian\n"}) {
    EXPECT_EQ(
        remedyOn(other),
        "enable VT-d in the firmware, then add intel_iommu=on to the kernel command line, then "
        "reboot")
        << other;
  }
  file("run/ostree-booted", "");
  EXPECT_THAT(remedyOn("ID=fedora\n"), testing::Not(testing::HasSubstr("grubby")));
}

TEST_F(HardwareRemedies, ReadReleaseFileThatSnapshotsKeep) {
  file("usr/lib/os-release", "ID=debian\nHOME_URL=\"https://example.org/\"\n");
  EXPECT_THAT(finding("iommu").remedy, testing::HasSubstr("update-grub"));
  EXPECT_EQ(knownSettings("usr/lib/os-release", "NAME=secret\nID=debian\nID_LIKE=x\n"),
            "ID=debian\nID_LIKE=x\n");
}

// --- modprobe.d, through modprobe

TEST_F(HardwareRemedies, BlacklistWithoutLosingOtherLines) {
  function(gpu).driver = "nouveau";
  file("etc/modprobe.d/vfpass-gpu.conf", "blacklist nova_core\n");
  file("etc/os-release", "ID=debian\n");
  const std::string remedy = finding("gpu-driver").remedy;
  runInTree(beforeThen(remedy));
  const Ran shown =
      run("modprobe --showconfig -C '" + (tree.path() / "etc/modprobe.d").string() + "'");
  EXPECT_THAT(shown.output, testing::HasSubstr("blacklist nouveau\n"));
  EXPECT_THAT(shown.output, testing::HasSubstr("blacklist nova_core\n"));
  EXPECT_THAT(finding("gpu-driver").remedy,
              testing::StartsWith("nouveau is blacklisted already in "
                                  "/etc/modprobe.d/vfpass-gpu.conf: run update-initramfs"));
  function(gpu).driver.clear();  // the next boot
  EXPECT_EQ(finding("gpu-driver").seen, "none");
}

// --- other commands

TEST_F(HardwareRemedies, CureWhatTheyAreFor) {
  file("usr/lib/systemd/system/openibd.service", "[Unit]\n");
  runInTree(replaced(finding("driver-stop").remedy, " && systemctl daemon-reload", ""));
  EXPECT_EQ(finding("driver-stop").seen, "RefuseManualStop=yes");
  file("sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts", "Y\n");
  EXPECT_EQ(outcome("unsafe-interrupts"), Outcome::failed);
  runInTree(finding("unsafe-interrupts").remedy);
  EXPECT_EQ(finding("unsafe-interrupts").seen, "N");
}

// --- mstconfig: every setting that a remedy names is in its own database, and the command parses

class Mstconfig : public HardwareRemedies {
 protected:
  void accepts(const std::string& remedy) const {
    ASSERT_TRUE(remedy.starts_with("mstconfig -d 0000:03:00.")) << remedy;
    const std::string command = beforeThen(remedy);
    // A device that no machine has: the program parses first, then fails to open it.
    const Ran ran = run("mstconfig -d ffff:ff:1f.7 " + command.substr(command.find("set ")));
    EXPECT_THAT(ran.output, testing::Not(testing::HasSubstr("SYNOPSIS"))) << command;
    for (const std::string& word : splitLines(replaced(command, " ", "\n"))) {
      if (const auto equals = word.find('='); equals != std::string::npos) {
        EXPECT_EQ(run("python3 -c '" + lookup + "' " + word.substr(0, equals)).status, 0) << word;
      }
    }
  }
  // LINK_TYPE_P1 is in the database as LINK_TYPE.
  const std::string lookup =
      "import re, sqlite3, sys\n"
      "path = \"/usr/share/mstflint/mlxconfig_dbs/mlxconfig_host.db\"\n"
      "names = {row[0] for row in sqlite3.connect(f\"file:{path}?mode=ro\", uri=True)"
      ".execute(\"select mlxconfig_name from params\")}\n"
      "sys.exit(re.sub(\"_P[12]$\", \"\", sys.argv[1]) not in names)\n";
};

TEST_F(Mstconfig, AcceptsRemedies) {
  require({});
  requirements.vfs[0].infiniband = true;
  accepts(finding("link-type").remedy);
  function(pf).address.function = 1;
  requirements.vfs[0].pf = function(pf).address;
  accepts(finding("link-type").remedy);
  requirements.vfs.clear();
  function(pf).address.function = 0;
  file(pf, "config", std::string(4096, '\0'));
  accepts(finding("ats").remedy);
  function(pf).totalVfs = 0;
  accepts(finding("sriov-firmware").remedy);
  file("vfpass/firmware/0000:03:00.0",
       "NUM_OF_VFS 16 16\nSRIOV_EN False(0) False(0)\nPF_NUM_OF_VF_VALID True(1) True(1)\n");
  accepts(finding("sriov-firmware").remedy);
}

TEST_F(Mstconfig, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(run("mstconfig -d ffff:ff:1f.7 set").output, testing::HasSubstr("SYNOPSIS"));
  EXPECT_NE(run("python3 -c '" + lookup + "' NO_SUCH_SETTING").status, 0);
}

}  // namespace
}  // namespace vfpass::doctor
