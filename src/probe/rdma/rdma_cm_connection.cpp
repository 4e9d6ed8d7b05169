#include "rdma/rdma_cm_connection.hpp"

#include <endian.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "channel/channel.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {

/// An event of rdma_cm, copied so that it could be acknowledged.
struct RdmaCmEvent {
  rdma_cm_event_type type = RDMA_CM_EVENT_ADDR_ERROR;
  int status = 0;            ///< negative errno, or the reason of a rejection
  rdma_cm_id* id = nullptr;  ///< of a request: a new one, which the receiver has to destroy
  std::string privateData;   ///< of requests, responses and rejections
};

namespace {

/// enum ib_cm_rej_reason of the kernel (include/rdma/ib_cm.h).
struct Rejection {
  int reason;
  std::string_view name;
};
constexpr int invalidServiceId = 8;
constexpr int consumerDefined = 28;
constexpr std::array<Rejection, 12> rejections{{{1, "no queue pair"},
                                                {3, "no resources"},
                                                {4, "timeout"},
                                                {5, "unsupported request"},
                                                {invalidServiceId, "invalid service ID"},
                                                {10, "stale connection"},
                                                {12, "invalid GID"},
                                                {13, "invalid LID"},
                                                {14, "invalid service level"},
                                                {16, "invalid hop limit"},
                                                {26, "invalid MTU"},
                                                {consumerDefined, "consumer defined"}}};

std::string ends(const RdmaCmPath& path) {
  return toString(path.own) + " (" + path.device + ") and " + toString(path.peer);
}

std::string statusText(const RdmaCmEvent& event) {
  if (event.type != RDMA_CM_EVENT_REJECTED) {
    return event.status < 0 ? errnoText(-event.status) : "status " + std::to_string(event.status);
  }
  const auto* known = std::ranges::find(rejections, event.status, &Rejection::reason);
  std::string text = event.status < 0            ? errnoText(-event.status)
                     : known == rejections.end() ? "reason " + std::to_string(event.status)
                                                 : "reason " + std::to_string(event.status) + ", " +
                                                       std::string(known->name);
  if (event.status == consumerDefined && !event.privateData.empty()) {
    text += ": " + printable(event.privateData);
  }
  return text;
}

std::string addressRemedy(const RdmaCmEvent& event, const RdmaCmPath& path) {
  const std::string peer = toString(path.peer);
  const std::string own = toString(path.own);
  if (event.status == -ETIMEDOUT || event.status == -EHOSTUNREACH) {
    return "check that ip neighbour show lists " + peer + " on the interface of " + path.device +
           "; if several interfaces are in one network, set arp_ignore 1 and arp_announce 2 on "
           "both sides (vfpass guest-setup)";
  }
  return "check that ip route get " + peer + " from " + own + " names the interface of " +
         path.device + "; give both interfaces addresses of one subnet (vfpass guest-setup)";
}

std::string rejectionRemedy(const RdmaCmEvent& event, const RdmaCmPath& path) {
  if (event.status == invalidServiceId) {
    return "check that only the other side's VF has the address " + toString(path.peer) +
           " (ip neighbour show): the host that received the request does not listen";
  }
  return event.status == consumerDefined ? "resolve what the other side's program reports"
                                         : "check dmesg and the probe's output on the other side";
}

std::string remedyFor(const RdmaCmEvent& event, const RdmaCmPath& path) {
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_ERROR:
      return addressRemedy(event, path);
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return "on InfiniBand, check that the subnet manager runs (sminfo) and that both IPoIB "
             "interfaces have one P_Key; on Ethernet, check that the link of " +
             path.device + " is up (rdma link show)";
    case RDMA_CM_EVENT_UNREACHABLE:
      return "no answer to the connection request: on Ethernet, let firewalls and switches pass "
             "UDP port 4791, and check VLAN and MTU on both sides; on InfiniBand, check P_Key and "
             "subnet manager";
    case RDMA_CM_EVENT_REJECTED:
      return rejectionRemedy(event, path);
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return "the driver has removed " + path.device + ": check dmesg";
    default:
      return "check dmesg and the probe's output on both sides";
  }
}

/// The Error for an event that ends the connection: its name, its status and a remedy for it.
/// `name` is the library's text for the event.
Error errorOf(const RdmaCmEvent& event, const std::string& name, const RdmaCmPath& path) {
  return Error("rdma_cm cannot connect " + ends(path) + ": " + name + ": " + statusText(event),
               remedyFor(event, path));
}

/// The Error for a call of librdmacm that failed with this errno value. `what` names the operation
/// and its object.
Error rdmaCmCallError(const std::string& what, int error, const std::string& remedy = {}) {
  if (error == EACCES || error == EPERM) {
    return Error(what + ": " + errnoText(error),
                 "run as root, or allow access to /dev/infiniband/rdma_cm");
  }
  return Error(what + ": " + errnoText(error), remedy.empty() ? "check dmesg" : remedy);
}

constexpr const char* loadModule =
    "load the kernel's rdma_cm for programs in the guest: modprobe rdma_ucm; on Debian the package "
    "rdma-core loads it at boot";

/// For rdma_resolve_addr and rdma_resolve_route. perftest uses 2 s, which emulated guests exceed.
constexpr int resolveMilliseconds = 10'000;

/// Only these events have private data; for others the memory means nothing.
bool hasPrivateData(rdma_cm_event_type type) {
  return type == RDMA_CM_EVENT_CONNECT_REQUEST || type == RDMA_CM_EVENT_CONNECT_RESPONSE ||
         type == RDMA_CM_EVENT_REJECTED;
}

// The kernel fills it up with zeros.
std::string privateDataOf(const rdma_cm_event& event) {
  const auto& conn = event.param.conn;
  if (!hasPrivateData(event.event) || conn.private_data == nullptr) {
    return {};
  }
  const auto* text = static_cast<const char*>(conn.private_data);
  return {text, ::strnlen(text, conn.private_data_len)};
}

std::string nameOf(const RdmaCmLibrary& library, rdma_cm_event_type type) {
  const char* name = library.eventText(type);
  return name != nullptr ? name : "event " + std::to_string(static_cast<int>(type));
}

}  // namespace

/// rdma_cm's event channel.
class RdmaCmChannel {
 public:
  /// Throws Error if the kernel's rdma_ucm is missing.
  explicit RdmaCmChannel(std::shared_ptr<const RdmaCmLibrary> library)
      : library_(std::move(library)),
        channel_(library_->createChannel(), library_->destroyChannel) {
    if (!channel_) {
      throw rdmaCmCallError("cannot open /dev/infiniband/rdma_cm", errno, loadModule);
    }
  }

  [[nodiscard]] const RdmaCmLibrary& library() const { return *library_; }
  [[nodiscard]] rdma_event_channel* get() const { return channel_.get(); }

  /// Waits for the next event. Throws Error at the deadline or when `stop` is requested; `doing`
  /// names the current operation.
  RdmaCmEvent next(const Deadline& deadline, const std::string& doing,
                   const std::stop_token& stop = {}) {
    constexpr int slice = 100;  // milliseconds between two looks at `stop`
    pollfd wait{channel_->fd, POLLIN, 0};
    while (::poll(&wait, 1, std::min(slice, deadline.pollTimeout())) <= 0) {
      requireTimeLeft(deadline, doing + " with rdma_cm");
      if (stop.stop_requested()) {
        throw Error("stopped while " + doing + " with rdma_cm");
      }
    }
    rdma_cm_event* event = nullptr;
    if (library_->getEvent(channel_.get(), &event) != 0) {
      throw rdmaCmCallError("cannot read an event of rdma_cm", errno);
    }
    RdmaCmEvent copy{event->event, event->status, event->id, privateDataOf(*event)};
    library_->acknowledgeEvent(event);
    return copy;
  }

 private:
  std::shared_ptr<const RdmaCmLibrary> library_;
  std::unique_ptr<rdma_event_channel, void (*)(rdma_event_channel*)> channel_;
};

namespace {

RdmaCmId createId(RdmaCmChannel& channel) {
  rdma_cm_id* id = nullptr;
  if (channel.library().createId(channel.get(), &id, nullptr, RDMA_PS_TCP) != 0) {
    throw rdmaCmCallError("cannot create an rdma_cm identifier", errno, loadModule);
  }
  return {id, channel.library().destroyId};
}

// The device follows from the address: that of another device, or of none, is an error.
void requireDevice(const VerbsLibrary& verbs, const rdma_cm_id& id, const RdmaCmPath& path) {
  const std::string found =
      id.verbs == nullptr ? "no device" : verbs.getDeviceName(id.verbs->device);
  if (found != path.device) {
    throw Error("rdma_cm uses " + printable(found) + " for address " + toString(path.own) +
                    ", not " + path.device,
                "give the interface of each RDMA device addresses of its own (ip address show), "
                "and list their GIDs with vfpass-probe inventory");
  }
}

void bind(RdmaCmChannel& channel, const VerbsLibrary& verbs, rdma_cm_id& id,
          const RdmaCmPath& path) {
  sockaddr_storage address = socketAddress(path.own, 0);
  if (channel.library().bindAddress(&id, reinterpret_cast<sockaddr*>(&address)) != 0) {
    throw rdmaCmCallError("rdma_cm cannot bind to " + toString(path.own) + " of " + path.device,
                          errno,
                          "check that an interface of the device has the address (ip address "
                          "show) and that vfpass-probe inventory lists its GID");
  }
  requireDevice(verbs, id, path);
}

// The connection's own attributes, in place of those that the endpoint would choose.
AttributeSource attributesFrom(const RdmaCmLibrary& library, rdma_cm_id& id) {
  return [&library, &id](ibv_qp_attr& attributes, int& mask) {
    // Bits of the kernel's own, which some versions pass on (librdmacm, ucma_modify_qp_rtr).
    constexpr unsigned kernelsBits = 0xe00000;
    if (library.queuePairAttributes(&id, &attributes, &mask) != 0) {
      throw rdmaCmCallError("rdma_cm does not return the queue pair's attributes", errno);
    }
    mask = static_cast<int>(static_cast<unsigned>(mask) & ~kernelsBits);
  };
}

rdma_conn_param parametersFor(const Endpoint& endpoint, const std::string& privateData) {
  constexpr std::uint8_t retries = 7;
  rdma_conn_param parameters{};
  parameters.private_data = privateData.data();
  parameters.private_data_len = static_cast<std::uint8_t>(privateData.size());
  parameters.responder_resources = RDMA_MAX_RESP_RES;
  parameters.initiator_depth = RDMA_MAX_INIT_DEPTH;
  parameters.retry_count = retries;
  parameters.rnr_retry_count = retries;
  parameters.qp_num = endpoint.queuePairNumber();
  return parameters;
}

void reject(const RdmaCmLibrary& library, rdma_cm_id& request, std::string_view reason) {
  library.reject(&request, reason.data(), static_cast<std::uint8_t>(reason.size()));
}

/// The initiator's steps: each call leads to one event.
class Connector {
 public:
  Connector(const RdmaCmLibraries& libraries, const RdmaCmPath& path, const Deadline& deadline)
      : libraries_(libraries),
        path_(path),
        deadline_(deadline),
        channel_(std::make_shared<RdmaCmChannel>(libraries.rdmaCm)),
        id_(createId(*channel_)) {}

  void resolve(std::uint16_t port) {
    bind(*channel_, *libraries_.verbs, *id_, path_);
    sockaddr_storage peer = socketAddress(path_.peer, port);
    auto* address = reinterpret_cast<sockaddr*>(&peer);
    called(library().resolveAddress(id_.get(), nullptr, address, timeout()),
           RDMA_CM_EVENT_ADDR_ERROR);
    await(RDMA_CM_EVENT_ADDR_RESOLVED, "resolving the other side's address");
    requireDevice(*libraries_.verbs, *id_, path_);
    called(library().resolveRoute(id_.get(), timeout()), RDMA_CM_EVENT_ROUTE_ERROR);
    await(RDMA_CM_EVENT_ROUTE_RESOLVED, "resolving the route to the other side");
  }

  RdmaCmConnection connect(Endpoint& endpoint, const std::string& token) {
    rdma_conn_param parameters = parametersFor(endpoint, token);
    called(library().connect(id_.get(), &parameters), RDMA_CM_EVENT_CONNECT_ERROR);
    await(RDMA_CM_EVENT_CONNECT_RESPONSE, "waiting for the other side to accept");
    endpoint.connect(attributesFrom(library(), *id_));
    called(library().establish(id_.get()), RDMA_CM_EVENT_CONNECT_ERROR);
    return {channel_, std::move(id_)};
  }

 private:
  [[nodiscard]] const RdmaCmLibrary& library() const { return *libraries_.rdmaCm; }
  [[nodiscard]] int timeout() const {
    return std::min(resolveMilliseconds, deadline_.pollTimeout());
  }

  // A call can also fail at once with what is otherwise an event.
  void called(int result, rdma_cm_event_type failure) const {
    if (result != 0) {
      throw errorOf({failure, -errno, nullptr, {}}, nameOf(library(), failure), path_);
    }
  }

  void await(rdma_cm_event_type wanted, const char* doing) {
    const RdmaCmEvent event = channel_->next(deadline_, doing);
    if (event.type != wanted) {
      throw errorOf(event, nameOf(library(), event.type), path_);
    }
  }

  const RdmaCmLibraries& libraries_;
  const RdmaCmPath& path_;
  const Deadline& deadline_;
  std::shared_ptr<RdmaCmChannel> channel_;
  RdmaCmId id_;
};

}  // namespace

RdmaCmConnection::~RdmaCmConnection() {
  if (id_) {
    channel_->library().disconnect(id_.get());
  }
}

RdmaCmConnection connectByRdmaCm(const RdmaCmLibraries& libraries, Endpoint& endpoint,
                                 const RdmaCmPath& path, const RdmaCmTarget& target,
                                 const Deadline& deadline) {
  Connector connector(libraries, path, deadline);
  connector.resolve(target.port);
  return connector.connect(endpoint, target.token);
}

RdmaCmListener::RdmaCmListener(RdmaCmLibraries libraries, RdmaCmPath path)
    : libraries_(std::move(libraries)),
      path_(std::move(path)),
      channel_(std::make_shared<RdmaCmChannel>(libraries_.rdmaCm)),
      id_(createId(*channel_)) {
  bind(*channel_, *libraries_.verbs, *id_, path_);
  if (libraries_.rdmaCm->listen(id_.get(), 1) != 0) {
    throw rdmaCmCallError("rdma_cm cannot listen on " + toString(path_.own), errno);
  }
}

std::uint16_t RdmaCmListener::port() const {
  return be16toh(libraries_.rdmaCm->sourcePort(id_.get()));
}

RdmaCmId RdmaCmListener::awaitRequest(const std::string& token, const Deadline& deadline,
                                      const std::stop_token& stop) {
  const RdmaCmLibrary& library = *libraries_.rdmaCm;
  for (;;) {
    const RdmaCmEvent event = channel_->next(deadline, "waiting for a request", stop);
    if (event.type != RDMA_CM_EVENT_CONNECT_REQUEST) {
      throw errorOf(event, nameOf(library, event.type), path_);
    }
    RdmaCmId request(event.id, library.destroyId);
    if (event.privateData != token) {
      reject(library, *request, "vfpass-probe expects another connection");
      continue;
    }
    try {
      requireDevice(*libraries_.verbs, *request, path_);
    } catch (const Error&) {
      reject(library, *request, "the request arrived on another RDMA device");
      throw;
    }
    return request;
  }
}

RdmaCmConnection RdmaCmListener::accept(Endpoint& endpoint, const std::string& token,
                                        const Deadline& deadline, const std::stop_token& stop) {
  RdmaCmId request = awaitRequest(token, deadline, stop);
  const RdmaCmLibrary& library = *libraries_.rdmaCm;
  endpoint.connect(attributesFrom(library, *request));
  rdma_conn_param parameters = parametersFor(endpoint, "");
  if (library.accept(request.get(), &parameters) != 0) {
    throw rdmaCmCallError("rdma_cm cannot accept the connection", errno);
  }
  for (;;) {
    const RdmaCmEvent event = channel_->next(deadline, "waiting for the connection", stop);
    if (event.type == RDMA_CM_EVENT_ESTABLISHED) {
      return {channel_, std::move(request)};
    }
    if (event.type != RDMA_CM_EVENT_CONNECT_REQUEST) {
      throw errorOf(event, nameOf(library, event.type), path_);
    }
    const RdmaCmId other(event.id, library.destroyId);
    reject(library, *other, "vfpass-probe is already connected");
  }
}

}  // namespace vfpass::probe
