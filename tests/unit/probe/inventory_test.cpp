#include "system/guest_inventory.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "hosts/sysfs_tree.hpp"
#include "rdma/rdma_devices.hpp"
#include "system/sysfs_reader.hpp"

namespace vfpass::probe {
namespace {

using Json = nlohmann::json;

const std::string mappedGid = "0000:0000:0000:0000:0000:ffff:c0a8:640a";

/// A guest with one VF and one GPU below one switch.
class InventoryTest : public testing::Test {
 protected:
  InventoryTest() {
    function("0000:00:02.0/0000:01:00.0/0000:02:00.0/0000:03:00.0", "0x020000", "0x15b3");
    function("0000:00:02.0/0000:01:00.0/0000:02:01.0/0000:04:00.0", "0x030200", "0x10de");
    tree.file(folder("0000:04:00.0") + "/resource",
              "0x0000000080000000 0x0000000080ffffff 0x0000000000040200\n"
              "0x0000002000000000 0x0000003fffffffff 0x000000000014220c\n"
              "0x0000000000000000 0x0000000000000000 0x0000000000000000\n");
    rdmaDevice();
    tree.file("sys/class/net/eth1/address", "52:54:00:12:34:56\n");
    tree.file("sys/class/net/eth1/mtu", "9000\n");
    tree.file("sys/class/net/eth1/operstate", "up\n");
    tree.link("sys/class/net/eth1/device", folder("0000:03:00.0"));
  }

  static std::string folder(const std::string& address) { return "sys/bus/pci/devices/" + address; }

  void function(const std::string& path, const std::string& deviceClass,
                const std::string& vendor) {
    const std::string whole = "sys/devices/pci0000:00/" + path;
    tree.file(whole + "/class", deviceClass + "\n");
    tree.file(whole + "/vendor", vendor + "\n");
    tree.file(whole + "/device", "0x101e\n");
    tree.file(whole + "/numa_node", "0\n");
    tree.link(folder(path.substr(path.rfind('/') + 1)), whole);
  }

  void rdmaDevice() {
    const std::string port = "sys/class/infiniband/mlx5_0/ports/1";
    tree.file("sys/class/infiniband/mlx5_0/node_guid", "5254:0000:0012:3456\n");
    tree.link("sys/class/infiniband/mlx5_0/device", folder("0000:03:00.0"));
    tree.file(port + "/state", "4: ACTIVE\n");
    tree.file(port + "/sm_lid", "0x1\n");
    tree.file(port + "/pkeys/0", "0x7fff\n");
    tree.file(port + "/pkeys/1", "0x0000\n");
    tree.file(port + "/pkeys/2", "0x8001\n");
    tree.file(port + "/rate", "400 Gb/sec (4X NDR)\n");
    tree.file(port + "/link_layer", "Ethernet\n");
    tree.file(port + "/gids/0", mappedGid + "\n");
    tree.file(port + "/gid_attrs/types/0", "IB/RoCE v1\n");
    tree.file(port + "/gids/1", mappedGid + "\n");
    tree.file(port + "/gid_attrs/types/1", "RoCE v2\n");
    tree.file(port + "/gid_attrs/ndevs/1", "eth1\n");
    tree.file(port + "/gids/2", "0000:0000:0000:0000:0000:0000:0000:0000\n");
  }

  hosts::SysfsTree tree;
};

TEST_F(InventoryTest, FindsRdmaDeviceAndItsGid) {
  const auto devices = readRdmaDevices(SysfsReader(tree.path()));
  ASSERT_EQ(devices.size(), 1U);
  EXPECT_EQ(devices[0].pci, "0000:03:00.0");
  EXPECT_EQ(devices[0].nodeGuid, "5254:0000:0012:3456");
  ASSERT_EQ(devices[0].ports.size(), 1U);
  EXPECT_EQ(devices[0].ports[0].gids.size(), 2U);
  EXPECT_EQ(devices[0].ports[0].gidIndex, 1);
  EXPECT_EQ(devices[0].ports[0].managerId, "0x1");
  EXPECT_THAT(devices[0].ports[0].partitionKeys, testing::ElementsAre("0x7fff", "0x8001"));
  EXPECT_EQ(readGidChoice(SysfsReader(tree.path()), "mlx5_0", 1), 1);
  EXPECT_EQ(readGidChoice(SysfsReader(tree.path()), "mlx5_1", 1), std::nullopt);
}

TEST_F(InventoryTest, ReadsPciNetdevsAndDistance) {
  const Json inventory = readInventory(SysfsReader(tree.path()));
  EXPECT_EQ(inventory.at("pci").size(), 2U);
  EXPECT_EQ(inventory.at("netdevs").at(0).at("mac"), "52:54:00:12:34:56");
  EXPECT_EQ(inventory.at("netdevs").at(0).at("mtu"), 9000);
  EXPECT_EQ(inventory.at("netdevs").at(0).at("pci"), "0000:03:00.0");
  EXPECT_EQ(inventory.at("distances"),
            Json::parse(R"([{"nic":"0000:03:00.0","gpu":"0000:04:00.0","distance":"PIX"}])"));
  EXPECT_EQ(inventory.at("gpus").at("devices").at(0).at("bar1_bytes"), 137438953472);
}

TEST_F(InventoryTest, GpusAreThoseOfPciIfLibrariesAreNotAsked) {
  const Json gpus = readInventory(SysfsReader(tree.path()), GpuLibraries::skip).at("gpus");
  EXPECT_EQ(gpus.at("libcuda"),
            Json::parse(R"({"found": false, "detail": "not asked: --no-gpus"})"));
  EXPECT_EQ(gpus.at("devices").at(0).at("bar1_bytes"), 137438953472);
}

TEST_F(InventoryTest, ReadsCountersOfPort) {
  const std::string port = "sys/class/infiniband/mlx5_0/ports/1";
  tree.file(port + "/counters/symbol_error", "0\n");
  tree.file(port + "/counters/port_xmit_discards", "N/A (no PMA)\n");
  tree.file(port + "/hw_counters/out_of_sequence", "17\n");
  tree.file(port + "/hw_counters/lifespan", "10\n");
  const Json expected = Json::parse(R"({"out_of_sequence": 17, "symbol_error": 0})");
  const SysfsReader sysfs(tree.path());
  EXPECT_EQ(readInventory(sysfs).at("rdma").at("devices").at(0).at("ports").at(0).at("counters"),
            expected);
  const Json device = readErrors(sysfs).at("rdma").at("devices").at(0);
  EXPECT_EQ(device.at("name"), "mlx5_0");
  EXPECT_EQ(device.at("ports"), Json::array({{{"number", 1}, {"counters", expected}}}));
}

TEST_F(InventoryTest, ReadsNcclsGidIndexAsNcclDoes) {
  const auto index = [this](const std::string& content) {
    tree.file("etc/nccl.conf", content);
    return readInventory(SysfsReader(tree.path())).at("nccl").at("gid_index");
  };
  EXPECT_EQ(readInventory(SysfsReader(tree.path())).at("nccl"),
            Json::parse(R"({"found": false, "gid_index": null})"));
  EXPECT_EQ(index("NCCL_DEBUG=INFO\nNCCL_IB_GID_INDEX=3\nNCCL_IB_GID_INDEX=1\n"), 3);
  EXPECT_EQ(index("#NCCL_IB_GID_INDEX=1\nNCCL_IB_GID_INDEX=0x5 # five"), 5);
  for (const char* unset : {"", " NCCL_IB_GID_INDEX=1", "NCCL_IB_GID_INDEX = 1", "x",
                            "NCCL_IB_GID_INDEX=-1\nNCCL_IB_GID_INDEX=3", "NCCL_IB_GID_INDEX=x",
                            "NCCL_IB_GID_INDEX=99999999999999999999999"}) {
    EXPECT_EQ(index(unset), nullptr) << unset;
  }
}

TEST_F(InventoryTest, ReadsSizesOfPackets) {
  std::string config(256, '\0');
  config[0x06] = 0x10;
  config[0x34] = 0x40;
  config[0x40] = 0x10;
  config[0x44] = 0x02;
  config.replace(0x48, 2, "\x30\x59");
  tree.file(folder("0000:03:00.0") + "/config", config);
  const Json functions = readInventory(SysfsReader(tree.path())).at("pci");
  EXPECT_EQ(functions.at(0).at("express"),
            Json::parse(R"({"max_payload": 256, "max_payload_supported": 512,
                            "max_read_request": 4096})"));
  EXPECT_FALSE(functions.at(1).contains("express"));
}

TEST_F(InventoryTest, SearchesKernelForInterfaceOfPeerMemory) {
  const auto interface = [this] {
    return readInventory(SysfsReader(tree.path())).at("gpus").at("nvidia_peermem").at("interface");
  };
  tree.file("proc/kallsyms", "0000000000000000 T ib_register_client\t[ib_core]\n");
  EXPECT_EQ(interface(), nullptr) << "ib_core is not loaded";
  tree.file("sys/module/ib_core/refcnt", "1\n");
  EXPECT_EQ(interface(), false);
  // Across the boundary of two reads.
  for (const std::size_t before : {0U, 65536U - 40U, 65536U - 20U, 65536U}) {
    tree.file("proc/kallsyms",
              std::string(before, 'x') +
                  "0000000000000000 T ib_register_peer_memory_client\t[ib_core]\n");
    EXPECT_EQ(interface(), true) << before;
  }
  tree.remove("proc/kallsyms");
  EXPECT_EQ(interface(), nullptr);
}

TEST_F(InventoryTest, BoundsCounters) {
  for (int number = 0; number < 300; ++number) {
    tree.file("sys/class/infiniband/mlx5_0/ports/1/counters/c" + std::to_string(number), "1\n");
  }
  EXPECT_EQ(readCounters(SysfsReader(tree.path()), "mlx5_0", 1).size(), 256U);
}

TEST_F(InventoryTest, FindsBar1OfHopperGpu) {
  tree.file(folder("0000:04:00.0") + "/resource",
            "0x0000004000000000 0x0000004000ffffff 0x000000000014220c\n"
            "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
            "0x0000006000000000 0x0000007fffffffff 0x000000000014220c\n");
  const Json inventory = readInventory(SysfsReader(tree.path()));
  EXPECT_EQ(inventory.at("gpus").at("devices").at(0).at("bar1_bytes"), 137438953472);
}

TEST_F(InventoryTest, FindsBarsWithoutAddress) {
  const auto bars = [this](const std::string& resource, const std::string& registers) {
    tree.file(folder("0000:04:00.0") + "/resource", resource);
    tree.file(folder("0000:04:00.0") + "/config", std::string(16, '\0') + registers);
    return readInventory(SysfsReader(tree.path())).at("gpus").at("devices").at(0).at("bars");
  };
  const std::string none = "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";
  // 64 bits wide and prefetchable, without an address.
  const std::string wide = std::string("\x0c\0\0\0\0\0\0\0", 8);
  EXPECT_EQ(bars("0x0000000080000000 0x0000000080ffffff 0x0000000000040200\n" + none + none,
                 std::string("\0\0\0\x80", 4) + wide),
            Json::parse(R"([{"number": 0, "bytes": 16777216, "assigned": true},
                            {"number": 1, "bytes": 0, "assigned": false}])"));
  EXPECT_EQ(bars(none + none + none + none, wide + wide),
            Json::parse(R"([{"number": 0, "bytes": 0, "assigned": false},
                            {"number": 2, "bytes": 0, "assigned": false}])"));
  EXPECT_EQ(bars(none + "0x0000000000000000 0x0000001fffffffff 0x000000002014220c\n", ""),
            Json::parse(R"([{"number": 1, "bytes": 137438953472, "assigned": false}])"));
  EXPECT_EQ(bars("nonsense\n", "\x0c"), Json::array());
}

TEST(Inventory, IsEmptyForEmptyTree) {
  const hosts::SysfsTree empty;
  const Json inventory = readInventory(SysfsReader(empty.path()));
  EXPECT_TRUE(inventory.at("pci").empty());
  EXPECT_TRUE(inventory.at("rdma").at("devices").empty());
  EXPECT_FALSE(inventory.at("gpus").at("nvidia_peermem").at("loaded"));
}

PciFunction at(const std::string& path, int node) {
  PciFunction function;
  function.path = "/sys/devices/" + path;
  function.numaNode = node;
  return function;
}

TEST(PciDistance, UsesNcclsTerms) {
  const PciFunction nic = at("pci0000:00/0000:00:01.0/0000:01:00.0", 0);
  EXPECT_EQ(pciDistance(nic, at("pci0000:00/0000:00:01.0/0000:01:00.1", 0)), "PIX");
  EXPECT_EQ(pciDistance(nic, at("pci0000:00/0000:00:02.0/0000:02:00.0", 0)), "PHB");
  EXPECT_EQ(pciDistance(nic, at("pci0000:40/0000:40:00.0/0000:41:00.0", 0)), "PHB");
  EXPECT_EQ(pciDistance(nic, at("pci0000:40/0000:40:00.0/0000:41:00.0", 1)), "SYS");
  EXPECT_EQ(pciDistance(at("pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0", 0),
                        at("pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:04:00.0/"
                           "0000:05:00.0/0000:06:00.0",
                           0)),
            "PXB");
}

}  // namespace
}  // namespace vfpass::probe
