#pragma once

#include <endian.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "fake_verbs.hpp"
#include "rdma/rdma_core.hpp"

namespace vfpass::probe {

/// librdmacm whose calls lead to the events that a test sets. The functions are replaced in the
/// loaded library, so only one may exist at a time.
class FakeRdmaCm {
 public:
  struct Event {
    rdma_cm_event_type type;
    int status = 0;
    std::string privateData;
  };

  FakeRdmaCm() : library(std::make_shared<RdmaCmLibrary>()) {
    current_ = this;
    // As in libibverbs, the device's name follows from the device.
    verbs.library->getDeviceName = [](ibv_device* device) {
      return device == &current_->otherDevice_ ? "fake1" : "fake0";
    };
    if (::pipe2(pipe_.data(), O_CLOEXEC) != 0) {
      throw std::runtime_error("no pipe");
    }
    replaceObjects();
    replaceSteps();
    replaceEvents();
  }
  FakeRdmaCm(const FakeRdmaCm&) = delete;
  FakeRdmaCm& operator=(const FakeRdmaCm&) = delete;
  ~FakeRdmaCm() {
    ::close(pipe_[0]);
    ::close(pipe_[1]);
    current_ = nullptr;
  }

  /// Queues an event; a request gets a new identifier.
  void happens(const Event& event) {
    events_.push_back(event);
    static_cast<void>(::write(pipe_[1], "", 1));
  }
  void useOtherDevice() { context_.device = &otherDevice_; }
  void requestsOnOtherDevice() { requestContext_.device = &otherDevice_; }
  [[nodiscard]] std::size_t identifiers() const { return alive_; }

  FakeVerbs verbs;
  std::shared_ptr<RdmaCmLibrary> library;
  int channelError = 0;  ///< errno of the call; 0: it succeeds
  int bindError = 0;
  int resolveError = 0;
  std::vector<std::string> calls;
  std::vector<std::string> rejections;
  rdma_conn_param parameters{};  ///< of rdma_connect or rdma_accept
  std::string sentData;
  std::vector<ibv_qp_state> states;  ///< for which attributes were asked

 private:
  static int failWith(int error) {
    errno = error;
    return error == 0 ? 0 : -1;
  }
  static int called(const char* name, int error = 0) {
    current_->calls.emplace_back(name);
    return failWith(error);
  }
  static int keep(const rdma_conn_param& parameters, const char* name) {
    current_->parameters = parameters;
    current_->sentData.assign(static_cast<const char*>(parameters.private_data),
                              parameters.private_data_len);
    return called(name);
  }
  static rdma_cm_id* newId(ibv_context* context) {
    auto* id = new rdma_cm_id{};
    id->verbs = context;
    ++current_->alive_;
    return id;
  }

  void replaceObjects() {
    context_.device = &device_;
    requestContext_.device = &device_;
    library->createChannel = [] {
      current_->channel_.fd = current_->pipe_[0];
      failWith(current_->channelError);
      return current_->channelError == 0 ? &current_->channel_ : nullptr;
    };
    library->destroyChannel = [](rdma_event_channel*) {};
    library->createId = [](rdma_event_channel*, rdma_cm_id** id, void*, rdma_port_space) {
      *id = newId(nullptr);
      return 0;
    };
    library->destroyId = [](rdma_cm_id* id) {
      delete id;
      --current_->alive_;
      return 0;
    };
    library->bindAddress = [](rdma_cm_id* id, sockaddr*) {
      id->verbs = &current_->context_;
      return called("bind", current_->bindError);
    };
    library->queuePairAttributes = [](rdma_cm_id*, ibv_qp_attr* attributes, int* mask) {
      current_->states.push_back(attributes->qp_state);
      attributes->max_rd_atomic = 200;
      attributes->ah_attr.is_global = 1;
      attributes->ah_attr.grh.sgid_index = 5;
      // With a bit of the kernel's own.
      *mask = IBV_QP_STATE | (attributes->qp_state == IBV_QPS_RTR ? IBV_QP_AV | 0x200000 : 0);
      return 0;
    };
  }

  void replaceSteps() {
    library->listen = [](rdma_cm_id*, int) { return called("listen"); };
    library->sourcePort = [](rdma_cm_id*) -> __be16 { return htobe16(4711); };
    library->resolveAddress = [](rdma_cm_id*, sockaddr*, sockaddr*, int) {
      return called("resolve address", current_->resolveError);
    };
    library->resolveRoute = [](rdma_cm_id*, int) { return called("resolve route"); };
    library->connect = [](rdma_cm_id*, rdma_conn_param* given) { return keep(*given, "connect"); };
    library->establish = [](rdma_cm_id*) { return called("establish"); };
    library->accept = [](rdma_cm_id*, rdma_conn_param* given) { return keep(*given, "accept"); };
    library->reject = [](rdma_cm_id*, const void* data, std::uint8_t length) {
      current_->rejections.emplace_back(static_cast<const char*>(data), length);
      return 0;
    };
    library->disconnect = [](rdma_cm_id*) { return called("disconnect"); };
  }

  void replaceEvents() {
    library->getEvent = [](rdma_event_channel* channel, rdma_cm_event** event) {
      char byte = 0;
      static_cast<void>(::read(channel->fd, &byte, 1));
      current_->last_ = current_->events_.front();
      current_->events_.pop_front();
      auto* made = new rdma_cm_event{};
      made->event = current_->last_.type;
      made->status = current_->last_.status;
      made->param.conn.private_data = current_->last_.privateData.c_str();
      made->param.conn.private_data_len =
          static_cast<std::uint8_t>(current_->last_.privateData.size() + 1);
      made->id = made->event == RDMA_CM_EVENT_CONNECT_REQUEST ? newId(&current_->requestContext_)
                                                              : nullptr;
      *event = made;
      return 0;
    };
    library->acknowledgeEvent = [](rdma_cm_event* event) {
      delete event;
      return 0;
    };
  }

  static inline FakeRdmaCm* current_ = nullptr;
  ibv_device device_{};
  ibv_device otherDevice_{};
  ibv_context context_{};
  ibv_context requestContext_{};
  rdma_event_channel channel_{};
  std::array<int, 2> pipe_{};
  std::deque<Event> events_;
  Event last_{RDMA_CM_EVENT_ADDR_ERROR, 0, ""};
  std::size_t alive_ = 0;
};

}  // namespace vfpass::probe
