#pragma once

namespace vfpass::verify {

/// The probe's inventory of a guest with one working VF and no GPU.
inline constexpr const char* soundInventory = R"text({
  "netdevs": [{"name": "eth1", "mac": "52:54:00:aa:bb:cc", "state": "up", "pci": "0000:01:00.0",
               "driver": "mlx5_core", "mtu": 1500}],
  "rdma": {"libibverbs": {"found": true, "detail": ""},
           "librdmacm": {"found": true, "detail": ""}, "devices": [
    {"name": "mlx5_0", "node_guid": "5254:0003:00aa:bbcc", "pci": "0000:01:00.0", "parent": "",
     "opens": {"done": true, "detail": ""}, "ports": [
      {"number": 1, "state": "4: ACTIVE", "rate": "100 Gb/sec (4X EDR)", "gid_index": 3,
       "link_layer": "Ethernet", "active_mtu": "4096", "ip_addresses": ["10.99.0.1/24"], "gids": [
        {"index": 0, "type": "IB/RoCE v1", "gid": "fe80:0000:0000:0000:5054:00ff:feaa:bbcc"},
        {"index": 3, "type": "RoCE v2", "gid": "0000:0000:0000:0000:0000:ffff:0a63:0001"}]}]}]},
  "gpus": {"libcuda": {"found": false, "detail": "libcuda.so.1 is missing"}, "devices": []}
})text";

}  // namespace vfpass::verify
