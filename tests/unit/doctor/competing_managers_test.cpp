#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "doctored_host.hpp"

namespace vfpass::doctor {
namespace {

using testing::HasSubstr;

/// Hosts where another program creates or configures VFs. That the remedies work is tested with the
/// programs themselves in tests/cli/remedies_test.py.
class VfsOfOtherPrograms : public testing::Test, public DoctoredHost {
 protected:
  const std::string profile = "etc/NetworkManager/system-connections/ens1.nmconnection";
  const std::string identity = "[connection]\nid=ens1\nuuid=0f5e9a3c-1111-4222-8333-944455566688\n";
};

TEST_F(VfsOfOtherPrograms, NetworkManagerProfileIsAcceptedWithoutGroupForVfs) {
  file(profile, identity + "[wifi-security]\npsk=secret\ntotal=1\n");
  EXPECT_EQ(outcome("networkmanager-sriov"), Outcome::passed);
}

TEST_F(VfsOfOtherPrograms, NetworkManagerProfileIsReportedWithAnyGroupForVfs) {
  for (const auto& [group, seen] : std::initializer_list<std::pair<std::string, std::string>>{
           {"[sriov]\ntotal-vfs=4\n", "total-vfs=4"},
           {"[sriov]\n", "[sriov] without total-vfs, which means 0"},
           {"[sriov]\nautoprobe-drivers=0\n[ipv4]\nmethod=auto\n",
            "[sriov] without total-vfs, which means 0"}}) {
    file(profile, identity + group);
    EXPECT_EQ(finding("networkmanager-sriov").subject, "/" + profile);
    EXPECT_EQ(finding("networkmanager-sriov").seen, seen);
    EXPECT_EQ(finding("networkmanager-sriov").remedy,
              "nmcli connection modify uuid 0f5e9a3c-1111-4222-8333-944455566688 remove sriov");
  }
}

TEST_F(VfsOfOtherPrograms, NetworkManagerProfileWithoutUuidIsNamedByItsQuotedId) {
  file(profile, "[connection]\nid=it's a $(pf)\n[sriov]\ntotal-vfs=4\n");
  EXPECT_EQ(finding("networkmanager-sriov").remedy,
            "nmcli connection modify id 'it'\\''s a $(pf)' remove sriov");
  file(profile, "[sriov]\ntotal-vfs=4\n");
  EXPECT_EQ(finding("networkmanager-sriov").remedy, "nmcli connection modify id ens1 remove sriov");
}

TEST_F(VfsOfOtherPrograms, NetworkManagerIsReportedForEveryPlaceOfItsSettings) {
  for (const auto& [name, content] : std::initializer_list<std::pair<const char*, const char*>>{
           {"run/NetworkManager/system-connections/a.nmconnection", "[sriov]\ntotal-vfs=4\n"},
           {"usr/lib/NetworkManager/system-connections/b.nmconnection", "[sriov]\ntotal-vfs=4\n"},
           {"etc/sysconfig/network-scripts/ifcfg-ens1", "NAME=ens1\nSRIOV_TOTAL_VFS=4\n"},
           {"etc/NetworkManager/conf.d/a.conf", "[device-pf]\nsriov-num-vfs=4\n"},
           {"usr/lib/NetworkManager/conf.d/b.conf", "[device-pf]\nsriov-num-vfs=4\n"}}) {
    EXPECT_EQ(outcome("networkmanager-sriov"), Outcome::passed);
    file(name, content);
    EXPECT_EQ(finding("networkmanager-sriov").subject, "/" + std::string(name));
    EXPECT_EQ(outcome("networkmanager-sriov"), Outcome::failed);
    file(name, "");
  }
}

TEST_F(VfsOfOtherPrograms, NetplanIsAcceptedWithoutVfs) {
  file("etc/netplan/01.yaml",
       "network:\n  ethernets:\n    ens1: {dhcp4: true}\n  vlans:\n    v5: {id: 5, link: ens1}\n");
  file("etc/netplan/README", "virtual-function-count: 4\n");
  EXPECT_EQ(outcome("netplan"), Outcome::passed);
}

TEST_F(VfsOfOtherPrograms, NetplanIsReportedWithCommandForEachSetting) {
  file("etc/netplan/02.yaml",
       "network:\n  ethernets:\n    ens1: {virtual-function-count: 8, embedded-switch-mode: "
       "switchdev}\n    br0.7: {delay-virtual-functions-rebind: true}\n");
  EXPECT_EQ(finding("netplan").seen,
            "ens1: virtual-function-count: 8, embedded-switch-mode: switchdev; "
            "br0.7: delay-virtual-functions-rebind: true");
  EXPECT_EQ(finding("netplan").remedy,
            "netplan set 'ethernets.ens1.embedded-switch-mode=null' && "
            "netplan set 'ethernets.ens1.virtual-function-count=null' && "
            "netplan set 'ethernets.br0\\.7.delay-virtual-functions-rebind=null'");
}

// netplan refuses to remove the count while another file still sets the mode.
TEST_F(VfsOfOtherPrograms, NetplanCommandRemovesSettingsOfDeviceInAllFiles) {
  file("etc/netplan/01.yaml", "network: {ethernets: {ens1: {virtual-function-count: 8}}}\n");
  file("etc/netplan/02.yaml", "network: {ethernets: {ens1: {embedded-switch-mode: legacy}}}\n");
  for (const Finding& each : findings("netplan")) {
    EXPECT_EQ(each.remedy,
              "netplan set 'ethernets.ens1.embedded-switch-mode=null' && "
              "netplan set 'ethernets.ens1.virtual-function-count=null'");
  }
}

TEST_F(VfsOfOtherPrograms, NetplanIsReportedForVfsDefinedByTheirLink) {
  file("etc/netplan/03.yaml",
       "network:\n  version: 2\n  ethernets:\n    ens1:\n      mtu: 9000\n    vf0:\n"
       "      link: ens1\n      macaddress: \"02:00:00:00:00:10\"\n");
  EXPECT_EQ(finding("netplan").seen, "vf0: link: ens1");
  // The definition may have more settings, so that no command deletes it.
  EXPECT_EQ(finding("netplan").remedy,
            "in /etc/netplan/03.yaml, remove the definition `vf0`, for which netplan creates a VF; "
            "then `netplan generate`");
}

TEST_F(VfsOfOtherPrograms, NetplanFileOfPackageIsOverriddenUnlessItIs) {
  const std::string text = "network: {ethernets: {ens1: {virtual-function-count: 8}}}\n";
  file("usr/lib/netplan/04.yaml", text);
  EXPECT_THAT(finding("netplan").remedy,
              HasSubstr("copy /usr/lib/netplan/04.yaml to /etc/netplan"));
  file("etc/netplan/04.yaml", "network: {version: 2}\n");
  EXPECT_EQ(outcome("netplan"), Outcome::passed);
}

TEST_F(VfsOfOtherPrograms, NetplanFileThatIsNoYamlIsNotObservable) {
  file("etc/netplan/05.yaml", "network: {ethernets: {ens1: {virtual-function-count: 8}\n");
  EXPECT_EQ(outcome("netplan"), Outcome::notObservable);
}

TEST_F(VfsOfOtherPrograms, SystemdFilesAreReportedBySection) {
  file("etc/systemd/network/10.link", "[Match]\nPath=x\n[Link]\nMTUBytes=9000\n#[SR-IOV]\n");
  EXPECT_EQ(outcome("systemd-link"), Outcome::passed);
  file("etc/systemd/network/10.link",
       "[Link]\nName=x\nSR-IOVVirtualFunctions=3\n[SR-IOV]\nVirtualFunction=0\n"
       "MACAddress=02:00:00:00:00:10\n[SR-IOV]\nVirtualFunction=1\n");
  EXPECT_EQ(finding("systemd-link").seen, "SR-IOVVirtualFunctions=3, 2 [SR-IOV] sections");
  EXPECT_EQ(finding("systemd-link").remedy,
            "in /etc/systemd/network/10.link, remove SR-IOVVirtualFunctions= from [Link] and all 2 "
            "[SR-IOV] sections with all keys below them; then `udevadm control --reload`");
}

TEST_F(VfsOfOtherPrograms, SystemdDropInsAndNetworkFilesAreReported) {
  file("etc/systemd/network/10.link.d/vfs.conf", "[Link]\nSR-IOVVirtualFunctions=4\n");
  file("etc/systemd/network/20.network", "[Match]\nName=x\n[SR-IOV]\nVirtualFunction=0\n");
  file("run/systemd/network/30.link", "[Link]\nSR-IOVVirtualFunctions=8\n");
  const auto found = findings("systemd-link");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].subject, "/etc/systemd/network/10.link.d/vfs.conf");
  EXPECT_EQ(found[1].subject, "/etc/systemd/network/20.network");
  EXPECT_THAT(found[1].remedy, HasSubstr("`networkctl reload`"));
  EXPECT_THAT(found[2].remedy,
              HasSubstr("copy /run/systemd/network/30.link to /etc/systemd/network/30.link"));
  file("etc/systemd/network/30.link", "");  // masks it
  EXPECT_EQ(findings("systemd-link").size(), 2U);
}

/// Files that write the VF count at boot.
class BootScripts : public VfsOfOtherPrograms {
 protected:
  /// The finding for one file, which is the only one.
  Finding only(const std::string& name, const std::string& content) {
    file(name, content);
    const auto found = findings("boot-scripts");
    EXPECT_EQ(found.size(), 1U) << name;
    tree.file(name, "");
    return found.at(0);
  }
  const std::string write = "echo 4 > /sys/class/net/ens1/device/sriov_numvfs\n";
};

TEST_F(BootScripts, AreFoundWhereverTheyAre) {
  for (const std::string name :
       {"etc/rc.local", "etc/rc.d/rc.local", "etc/crontab", "etc/cron.d/vfs", "etc/cron.daily/vfs",
        "var/spool/cron/crontabs/root", "var/spool/cron/tabs/root", "etc/anacrontab",
        "etc/infiniband/post-start-hook.sh", "etc/init.d/vfs", "etc/network/interfaces",
        "etc/network/interfaces.d/vfs", "etc/network/if-up.d/vfs", "etc/network/if-pre-up.d/vfs",
        "etc/NetworkManager/dispatcher.d/vfs", "etc/networkd-dispatcher/routable.d/vfs",
        "etc/libvirt/hooks/qemu", "etc/cloud/cloud.cfg.d/vfs.cfg"}) {
    const Finding found = only(name, "\n# a comment: " + write + "pre-up " + write);
    EXPECT_EQ(found.outcome, Outcome::failed) << name;
    EXPECT_EQ(found.subject, "/" + name);
    EXPECT_EQ(found.seen, "sriov_numvfs in line 3");
    EXPECT_THAT(found.remedy, HasSubstr("in /" + name + ", remove sriov_numvfs in line 3"));
  }
}

TEST_F(BootScripts, AreFoundInUnitsAndDropIns) {
  for (const std::string name :
       {"etc/systemd/system/vfs.service", "etc/systemd/system/mlx.service.d/vfs.conf",
        "usr/lib/systemd/system/packaged.service"}) {
    const Finding found = only(name, "[Service]\nExecStart=/bin/sh -c '" + write + "'\n");
    EXPECT_EQ(found.outcome, Outcome::failed) << name;
    EXPECT_THAT(found.remedy, HasSubstr("disable the unit if it does nothing else"));
  }
  EXPECT_EQ(only("etc/systemd/system/a.service",
                 "[Unit]\nDescription=sets sriov_numvfs\n"
                 "ConditionPathExists=/sys/class/net/ens1/device/sriov_numvfs\n")
                .outcome,
            Outcome::passed);
}

TEST_F(BootScripts, AreFollowedToTheScriptsThatTheyStart) {
  file("usr/local/bin/vfs.sh",
       "#!/bin/bash\nn=4\necho $n > /sys/class/net/x/device/mlx5_num_vfs\n");
  for (const auto& [name, content] : std::initializer_list<std::pair<const char*, const char*>>{
           {"etc/systemd/system/vfs.service", "[Service]\nExecStart=-/usr/local/bin/vfs.sh all\n"},
           {"etc/udev/rules.d/90.rules", "ACTION==\"add\", RUN+=\"/usr/local/bin/vfs.sh $name\"\n"},
           {"etc/cron.d/vfs", "@reboot root /usr/local/bin/vfs.sh\n"},
           {"etc/rc.local", "#!/bin/sh\n. /usr/local/bin/vfs.sh\n"},
           {"etc/systemd/system/short.service", "[Service]\nExecStart=vfs.sh 4\n"},
           {"etc/cron.d/short", "@reboot root vfs.sh\n"},
           {"etc/network/interfaces", "iface x inet manual\n  up /usr/local/bin/vfs.sh\n"}}) {
    const Finding found = only(name, content);
    EXPECT_EQ(found.subject, "/usr/local/bin/vfs.sh") << name;
    EXPECT_EQ(found.seen, "mlx5_num_vfs in line 3; started by /" + std::string(name));
  }
  EXPECT_EQ(outcome("boot-scripts"), Outcome::passed);  // nothing starts it
}

TEST_F(BootScripts, UdevRulesThatMatchAreAcceptedAndThoseThatAssignAreNot) {
  const std::string name = "etc/udev/rules.d/60.rules";
  for (const std::string rule :
       {"ATTR{device/sriov_numvfs}==\"0\", ENV{ID_NET_NAME_POLICY}=\"path\"",
        "ATTR{device/sriov_numvfs}!=\"0\", NAME=\"x\"", "ATTRS{sriov_numvfs}==\"4\", NAME=\"x\"",
        "TEST==\"device/sriov_numvfs\", NAME=\"x\"", "# ATTR{device/sriov_numvfs}=\"8\"",
        "RUN+=\"/bin/cat /sys/class/net/x/device/sriov_numvfs\"",
        "ENV{N}=\"$attr{device/sriov_numvfs}\""}) {
    EXPECT_EQ(only(name, rule + "\n").outcome, Outcome::passed) << rule;
  }
  for (const std::string rule :
       {"ACTION==\"add\", \\\n  ATTR{device/sriov_numvfs}=\"4\"",
        "ATTR{device/sriov_numvfs}==\"0\", \\\nATTR{device/sriov_numvfs}=\"4\"",
        "ATTR{device/sriov_numvfs}==\"0\", \\\n RUN+=\"/bin/sh -c 'echo 4 > "
        "/sys$devpath/device/sriov_numvfs'\""}) {
    EXPECT_EQ(only(name, rule + "\n").seen, "sriov_numvfs in line 2") << rule;
  }
  EXPECT_THAT(only(name, "ATTR{device/sriov_numvfs}=\"4\"\n").remedy,
              HasSubstr("the whole rule if it then has no assignment"));
}

TEST_F(BootScripts, ScriptsThatOnlyReadAreAccepted) {
  for (const std::string line :
       {"cat /sys/class/net/x/device/sriov_numvfs", "n=$(cat \"$dev/sriov_numvfs\")",
        "if [ -e $dev/sriov_numvfs ]; then", "[ \"$(< $dev/sriov_numvfs)\" = 4 ] && exit",
        "read -r n < $dev/sriov_numvfs", "while ! test -w $dev/sriov_numvfs; do",
        "echo sriov_numvfs of $dev", "num_vfs=8", "true # echo 4 > sriov_numvfs",
        "true\t# echo 4 > sriov_numvfs", "cut -c1 \"$dev\"/sriov_numvfs",
        "n=`cat $(readlink -f $dev)/sriov_numvfs`"}) {
    EXPECT_EQ(only("etc/rc.local", line + "\n").outcome, Outcome::passed) << line;
  }
  for (const std::string line :
       {"[ -e $dev/sriov_numvfs ] && echo 4 >$dev/sriov_numvfs", "echo 4 | tee $dev/sriov_numvfs",
        "echo 4 | sudo tee \"$dev/sriov_numvfs\"", "dd if=n of=$dev/sriov_numvfs",
        "file=$dev/sriov_numvfs", "for f in /sys/class/net/*/device/sriov_numvfs; do",
        "modprobe mlx4_core num_vfs=8", "echo 0 >>\"${dev}/sriov_numvfs\"",
        "echo 4 > \"$dev\"/sriov_numvfs", "echo 4 >'/sys/x'\"$dev\"/sriov_numvfs",
        "echo 4 > $(readlink -f /sys/class/net/x/device)/sriov_numvfs",
        "echo 4 >`readlink -f $dev`/sriov_numvfs"}) {
    EXPECT_EQ(only("etc/rc.local", line + "\n").outcome, Outcome::failed) << line;
  }
}

TEST_F(BootScripts, ParametersOfModulesAreFound) {
  const Finding found =
      only("etc/modprobe.d/mlx4.conf", "options mlx4_core num_vfs=8 port_type_array=2,2\n");
  EXPECT_EQ(found.seen, "num_vfs=8 in line 1");
  EXPECT_THAT(found.remedy, HasSubstr("keep the other options"));
  file("proc/cmdline", "quiet ixgbe.max_vfs=4\n");
  EXPECT_EQ(finding("boot-scripts").seen, "ixgbe.max_vfs=4");
}

TEST_F(BootScripts, ConfigurationsOfServicesAreFound) {
  const Finding shim = only("etc/sriov-netplan-shim/interfaces.yaml",
                            "interfaces:\n    enp3s0f0:\n        num_vfs: 64\n");
  EXPECT_EQ(shim.seen, "num_vfs: 64 in line 3");
  EXPECT_THAT(shim.remedy, HasSubstr("remove num_vfs: 64 in line 3, and an interface that"));
  EXPECT_THAT(only("var/lib/os-net-config/sriov_config.yaml",
                   "- device_type: pf\n  name: ens1\n  numvfs: 10\n")
                  .remedy,
              HasSubstr("let os-net-config write this file again"));
  EXPECT_EQ(only("etc/sriov-operator/sriov-interface-config.yaml",
                 "spec: {interfaces: [{pciAddress: '0000:d8:00.0', numVfs: 8}]}\n")
                .seen,
            "numVfs: 8 in line 1");
  EXPECT_EQ(only("etc/sriov-netplan-shim/interfaces.yaml", "a: [\n# num_vfs: 4\n").outcome,
            Outcome::passed);
}

// Each line repeats the one before ten times: without a limit, this takes minutes.
TEST_F(BootScripts, AliasesInYamlDoNotMultiply) {
  std::string text = "num_vfs: 64\na0: &a0 [1]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int j = 1; j < 10; ++j) {
      text += ", " + before;
    }
    text += "]\n";
  }
  EXPECT_EQ(only("etc/sriov-netplan-shim/interfaces.yaml", text).seen, "num_vfs: 64 in line 1");
}

TEST_F(BootScripts, SettingsForSysfsAreFound) {
  const std::string path = "class/net/x/device/sriov_numvfs";
  EXPECT_EQ(only("etc/sysfs.d/a.conf", path + " = 4\n").outcome, Outcome::failed);
  EXPECT_EQ(only("etc/sysfs.d/a.conf", "mode " + path + " = 0660\n").outcome, Outcome::passed);
  EXPECT_EQ(only("etc/tmpfiles.d/a.conf", "w /sys/" + path + " - - - - 4\n").outcome,
            Outcome::failed);
  EXPECT_EQ(only("etc/tmpfiles.d/a.conf", "z /sys/" + path + " 0660 root kvm\n").outcome,
            Outcome::passed);
}

TEST_F(BootScripts, HiddenFilesAndCopiesDoNotRun) {
  file("usr/lib/udev/rules.d/60.rules", "ATTR{device/sriov_numvfs}=\"4\"\n");
  EXPECT_THAT(finding("boot-scripts").remedy,
              HasSubstr("copy /usr/lib/udev/rules.d/60.rules to /etc/udev/rules.d/60.rules"));
  file("etc/udev/rules.d/60.rules", "# nothing\n");
  file("etc/cron.d/vfs.dpkg-old", write);
  file("etc/udev/rules.d/README", "ATTR{device/sriov_numvfs}=\"4\"\n");
  EXPECT_EQ(outcome("boot-scripts"), Outcome::passed);
}

TEST_F(BootScripts, KeepNothingButTheFindingInSnapshots) {
  file("etc/rc.local", "password=secret\n" + write);
  EXPECT_EQ(knownSettings("etc/rc.local", "password=secret\n" + write), "");
  std::map<std::string, std::string> answers;
  Inquiries inquiries;
  inquiries.answers = &answers;
  static_cast<void>(examine(host::Root(tree.path()), builder.topology, requirements, inquiries));
  EXPECT_EQ(answers.at("boot-scripts"), "/etc/rc.local\t2\tsriov_numvfs\t");
  file("etc/rc.local", "");
  file("vfpass/boot-scripts", answers.at("boot-scripts") + "\n");
  EXPECT_EQ(finding("boot-scripts").seen, "sriov_numvfs in line 2");
}

TEST_F(BootScripts, RunAfterTheirNameIsAnnounced) {
  std::vector<std::string> announced;
  Inquiries inquiries;
  inquiries.onCheck = [&](std::string_view check) { announced.emplace_back(check); };
  static_cast<void>(examine(host::Root(tree.path()), builder.topology, requirements, inquiries));
  const auto names = checkNames();
  ASSERT_EQ(announced.size(), names.size() + 1);  // and first, the query of the cards' settings
  EXPECT_TRUE(std::ranges::equal(names, std::vector(announced.begin() + 1, announced.end())));
}

}  // namespace

}  // namespace vfpass::doctor
