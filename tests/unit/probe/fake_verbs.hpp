#pragma once

#include <endian.h>

#include <cstring>
#include <memory>
#include <vector>

#include "rdma/rdma_core.hpp"

namespace vfpass::probe {

/// libibverbs with one device, `fake0`, whose port a test sets and whose queue pairs record how
/// they are modified. The functions are replaced in the loaded library, so only one may exist at a
/// time.
class FakeVerbs {
 public:
  FakeVerbs() : library(std::make_shared<VerbsLibrary>()) {
    current_ = this;
    port.state = IBV_PORT_ACTIVE;
    port.link_layer = IBV_LINK_LAYER_INFINIBAND;
    port.active_mtu = IBV_MTU_4096;
    port.lid = 7;
    port.sm_lid = 1;
    replaceQueries();
    replaceObjects();
  }
  FakeVerbs(const FakeVerbs&) = delete;
  FakeVerbs& operator=(const FakeVerbs&) = delete;
  ~FakeVerbs() { current_ = nullptr; }

  std::shared_ptr<VerbsLibrary> library;
  ibv_port_attr port{};
  std::vector<std::uint16_t> partitions{0xffff};
  std::vector<ibv_qp_attr> modified;  ///< in the order of the calls
  std::vector<int> masks;             ///< of the same calls

 private:
  void replaceQueries() {
    library->getDeviceList = [](int* count) {
      *count = 1;
      return current_->list_;
    };
    library->freeDeviceList = [](ibv_device**) {};
    library->getDeviceName = [](ibv_device*) { return "fake0"; };
    library->queryDevice = [](ibv_context*, ibv_device_attr*) { return 0; };
    library->queryPort = [](ibv_context*, std::uint8_t, _compat_ibv_port_attr* attributes) {
      std::memcpy(reinterpret_cast<void*>(attributes), &current_->port, sizeof current_->port);
      return 0;
    };
    library->queryGid = [](ibv_context*, std::uint8_t, int, ibv_gid* gid) {
      *gid = {};
      gid->raw[0] = 0xfe;
      gid->raw[15] = 9;
      return 0;
    };
    library->queryPartitionKey = [](ibv_context*, std::uint8_t, int index, __be16* key) {
      *key = htobe16(current_->partitions.at(static_cast<std::size_t>(index)));
      return 0;
    };
  }

  void replaceObjects() {
    library->openDevice = [](ibv_device*) { return &current_->context_; };
    library->closeDevice = [](ibv_context*) { return 0; };
    library->allocatePd = [](ibv_context*) { return &current_->domain_; };
    library->freePd = [](ibv_pd*) { return 0; };
    library->createCq = [](ibv_context*, int, void*, ibv_comp_channel*, int) {
      return &current_->completions_;
    };
    library->destroyCq = [](ibv_cq*) { return 0; };
    library->createQp = [](ibv_pd*, ibv_qp_init_attr*) { return &current_->queuePair_; };
    library->destroyQp = [](ibv_qp*) { return 0; };
    library->modifyQp = [](ibv_qp*, ibv_qp_attr* attributes, int mask) {
      current_->modified.push_back(*attributes);
      current_->masks.push_back(mask);
      return 0;
    };
  }

  static inline FakeVerbs* current_ = nullptr;
  ibv_device device_{};
  ibv_device* list_[2] = {&device_, nullptr};
  ibv_context context_{};
  ibv_pd domain_{};
  ibv_cq completions_{};
  ibv_qp queuePair_{};
};

}  // namespace vfpass::probe
