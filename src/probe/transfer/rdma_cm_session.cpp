#include "transfer/rdma_cm_session.hpp"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "channel/channel.hpp"
#include "rdma/ip_address.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

using Json = nlohmann::json;

constexpr std::size_t mostAddresses = 64;

RdmaCmLibraries librariesOf(const Resources& resources) {
  return {resources.verbs, std::make_shared<const RdmaCmLibrary>()};
}

/// 32 hexadecimal digits, so that no request of another program is accepted.
std::string newToken() {
  std::array<std::uint8_t, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw Error("cannot get random bytes: " + errnoText(errno));
  }
  return hexBytes(bytes, "");
}

std::string listOf(const std::vector<IpAddress>& addresses) {
  std::vector<std::string> texts;
  for (const IpAddress& each : addresses) {
    texts.push_back(networkText(each));
  }
  return join(texts, ", ");
}

RdmaCmPath pathFrom(const Resources& resources, const std::vector<IpAddress>& offered) {
  const auto own = ownAddresses(resources);
  const auto pair = chooseAddresses(own, offered);
  if (!pair) {
    throw Error("no two IP addresses of one family: " + listOf(own) + " on this side, " +
                    listOf(offered) + " on the other",
                "give both interfaces addresses of one subnet (vfpass guest-setup)");
  }
  return {resources.port.device, pair->own, pair->peer};
}

/// An address in a message of the other side.
IpAddress addressFrom(const std::string& text) {
  const auto address = parseIpAddress(text);
  if (!address) {
    throw Error("the other side sent an invalid IP address",
                "run the same build of vfpass-probe on both sides");
  }
  return *address;
}

/// `source` is this side's own address, which the other side has chosen from the offer.
RdmaCmPath pathIn(const JsonReader& description, const std::string& device,
                  const std::vector<IpAddress>& offered) {
  const IpAddress own = addressFrom(description["source"].requireText());
  const bool known = std::ranges::any_of(
      offered, [&](const IpAddress& each) { return toString(each) == toString(own); });
  if (!known) {
    throw Error("the other side chose an address that this side does not have: " + toString(own),
                "run the same build of vfpass-probe on both sides");
  }
  return {device, own, addressFrom(description["address"].requireText())};
}

RdmaCmTarget targetIn(const JsonReader& description) {
  constexpr std::size_t mostPrivateData = 56;
  RdmaCmTarget target{description["port"].requireNumber<std::uint16_t>(),
                      description["token"].requireText()};
  target.token.resize(std::min(target.token.size(), mostPrivateData));
  return target;
}

}  // namespace

std::vector<IpAddress> ownAddresses(const Resources& resources) {
  if (!resources.ipAddress.empty()) {
    const auto given = parseIpAddress(resources.ipAddress);
    if (!given) {
      throw Error("invalid --ip-address " + printable(resources.ipAddress),
                  "specify an IPv4 or IPv6 address that is not link-local", ExitCode::badInput);
    }
    return {*given};
  }
  auto addresses = portAddresses(SysfsReader(), resources.port.device, resources.port.port);
  if (addresses.empty()) {
    throw Error("rdma_cm needs an IP address, and no interface of " +
                    printable(resources.port.device) + " port " +
                    std::to_string(resources.port.port) + " has one",
                "assign one to the VF's interface (vfpass guest-setup); on InfiniBand to its IPoIB "
                "interface (modprobe ib_ipoib)");
  }
  addresses.resize(std::min(addresses.size(), mostAddresses));
  return addresses;
}

Json toJson(const std::vector<IpAddress>& addresses) {
  Json list = Json::array();
  for (const IpAddress& each : addresses) {
    list.push_back(networkText(each));
  }
  return list;
}

std::vector<IpAddress> addressesFromJson(const JsonReader& list) {
  std::vector<IpAddress> addresses;
  for (const JsonReader& each : list.requireList(mostAddresses)) {
    addresses.push_back(addressFrom(each.textOr("")));
  }
  return addresses;
}

RdmaCmInitiator::RdmaCmInitiator(Side& side, const Resources& resources,
                                 const std::vector<IpAddress>& offered,
                                 const JsonReader& description, const Deadline& deadline)
    : path_(pathIn(description, resources.port.device, offered)),
      target_(targetIn(description)),
      connection_(
          connectByRdmaCm(librariesOf(resources), side.endpoint(), path_, target_, deadline)) {}

Json RdmaCmInitiator::report() const {
  return {{"source", toString(path_.own)},
          {"destination", toString(path_.peer)},
          {"port", target_.port}};
}

RdmaCmAcceptor::RdmaCmAcceptor(Side& side, const Resources& resources,
                               const std::vector<IpAddress>& offered, const Deadline& deadline)
    : side_(side),
      deadline_(deadline),
      path_(pathFrom(resources, offered)),
      token_(newToken()),
      listener_(librariesOf(resources), path_) {}

Json RdmaCmAcceptor::describe() const {
  return {{"address", toString(path_.own)},
          {"source", toString(path_.peer)},
          {"port", listener_.port()},
          {"token", token_}};
}

void RdmaCmAcceptor::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) {
    try {
      connection_.emplace(listener_.accept(side_.endpoint(), token_, deadline_, stop));
    } catch (...) {
      // After a stop, waiting ends with an error that is not the cause.
      failure_ = stop.stop_requested() ? nullptr : std::current_exception();
    }
  });
}

void RdmaCmAcceptor::finish() {
  thread_.join();
  if (failure_) {
    std::rethrow_exception(failure_);
  }
}

void RdmaCmAcceptor::stop() {
  thread_.request_stop();
  finish();
}

}  // namespace vfpass::probe
