#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "program/probe_commands.hpp"
#include "vfpass/base/deadline.hpp"
#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::probe {
namespace {

/// ICMP echo requests through one interface.
struct PingRequest {
  std::string interface;
  std::string address;  ///< IPv4 or IPv6, without a scope
  unsigned count = 5;
  std::chrono::milliseconds timeout{1000};  ///< for each reply
};

using Clock = std::chrono::steady_clock;

constexpr std::size_t headerLength = 8;  // type, code, checksum, identifier, sequence number
constexpr std::size_t tokenLength = 16;
using Token = std::array<std::uint8_t, tokenLength>;
using Packet = std::array<std::uint8_t, headerLength + tokenLength>;

/// Where to send, and the protocol's numbers.
struct Address {
  sockaddr_storage address{};
  socklen_t length = 0;
  int family = AF_INET;
  int protocol = IPPROTO_ICMP;
  std::uint8_t request = ICMP_ECHO;
  std::uint8_t reply = ICMP_ECHOREPLY;
};

Address targetOf(const PingRequest& request) {
  const unsigned index = ::if_nametoindex(request.interface.c_str());
  if (index == 0) {
    throw Error("no interface " + printable(request.interface) + ": " + errnoText(errno),
                "list the interfaces with ip link show");
  }
  Address target;
  auto* four = reinterpret_cast<sockaddr_in*>(&target.address);
  auto* six = reinterpret_cast<sockaddr_in6*>(&target.address);
  if (::inet_pton(AF_INET, request.address.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    target.length = sizeof *four;
  } else if (::inet_pton(AF_INET6, request.address.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_scope_id = IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr) ? index : 0;
    target = {target.address, sizeof *six,        AF_INET6,
              IPPROTO_ICMPV6, ICMP6_ECHO_REQUEST, ICMP6_ECHO_REPLY};
  } else {
    throw Error("invalid IP address " + printable(request.address),
                "specify an IPv4 or IPv6 address", ExitCode::badInput);
  }
  return target;
}

FileDescriptor openSocket(const Address& target, const std::string& interface) {
  FileDescriptor socket(::socket(target.family, SOCK_RAW | SOCK_CLOEXEC, target.protocol));
  if (!socket) {
    throw Error("cannot open an ICMP socket: " + errnoText(errno), "run as root");
  }
  if (::setsockopt(socket.get(), SOL_SOCKET, SO_BINDTODEVICE, interface.c_str(),
                   static_cast<socklen_t>(interface.size())) != 0) {
    throw Error("cannot bind to interface " + printable(interface) + ": " + errnoText(errno),
                "run as root");
  }
  return socket;
}

// The Internet checksum (RFC 1071). The kernel computes that of ICMPv6 itself.
std::uint16_t checksumOf(const Packet& packet) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < packet.size(); i += 2) {
    sum += static_cast<std::uint32_t>(packet[i] << 8U) | packet[i + 1];
  }
  sum = (sum & 0xffffU) + (sum >> 16U);
  sum += sum >> 16U;
  return static_cast<std::uint16_t>(~sum);
}

// The random token tells our replies from those to other programs.
Packet packetFor(const Address& target, const Token& token, unsigned number) {
  Packet packet{};
  packet[0] = target.request;
  packet[6] = static_cast<std::uint8_t>(number >> 8U);
  packet[7] = static_cast<std::uint8_t>(number);
  std::copy(token.begin(), token.end(), packet.begin() + headerLength);
  if (target.family == AF_INET) {
    const std::uint16_t checksum = checksumOf(packet);
    packet[2] = static_cast<std::uint8_t>(checksum >> 8U);
    packet[3] = static_cast<std::uint8_t>(checksum);
  }
  return packet;
}

bool isReply(const std::uint8_t* bytes, std::size_t length, const Address& target,
             const Packet& sent) {
  // A raw IPv4 socket delivers the IP header as well.
  const std::size_t skipped = target.family == AF_INET && length > 0 ? (bytes[0] & 0xfU) * 4U : 0;
  if (length < skipped + sent.size()) {
    return false;
  }
  const std::uint8_t* packet = bytes + skipped;
  return packet[0] == target.reply && std::equal(sent.begin() + 4, sent.end(), packet + 4);
}

// Microseconds until the reply; nullopt: none in time.
std::optional<double> exchange(int socket, const Address& target, const Packet& packet,
                               std::chrono::milliseconds timeout, std::string& problem) {
  const auto begin = Clock::now();
  const Deadline deadline(timeout);
  if (::sendto(socket, packet.data(), packet.size(), 0,
               reinterpret_cast<const sockaddr*>(&target.address), target.length) < 0) {
    problem = errnoText(errno);
    return std::nullopt;
  }
  pollfd wait{socket, POLLIN, 0};
  while (::poll(&wait, 1, deadline.pollTimeout()) > 0) {
    std::array<std::uint8_t, 1500> buffer{};
    const ssize_t count = ::recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count > 0 && isReply(buffer.data(), static_cast<std::size_t>(count), target, packet)) {
      return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
    }
  }
  return std::nullopt;
}

/// Sends the requests one after another, bound to the interface (SO_BINDTODEVICE), so that no other
/// route can carry them; needs CAP_NET_RAW. Returns a document whose `passed` says whether at least
/// one reply arrived: the first packets may be lost while neighbours are resolved. Throws Error for
/// an address or an interface that cannot be used.
nlohmann::json ping(const PingRequest& request) {
  const Address target = targetOf(request);
  const FileDescriptor socket = openSocket(target, request.interface);
  Token token{};
  if (::getrandom(token.data(), token.size(), 0) != static_cast<ssize_t>(token.size())) {
    throw Error("cannot get random bytes: " + errnoText(errno));
  }
  // One request after another, each with its own deadline.
  std::vector<double> times;
  std::string problem;
  for (unsigned number = 1; number <= request.count; ++number) {
    const auto time =
        exchange(socket.get(), target, packetFor(target, token, number), request.timeout, problem);
    if (time) {
      times.push_back(*time);
    }
  }
  nlohmann::json document{{"interface", request.interface},
                          {"address", request.address},
                          {"sent", request.count},
                          {"received", times.size()},
                          {"passed", !times.empty()}};
  if (!times.empty()) {
    std::ranges::sort(times);
    document["median_microseconds"] = times[times.size() / 2];
  }
  if (!problem.empty()) {
    document["problem"] = problem;
  }
  return document;
}

}  // namespace

void addPing(CLI::App& program, Action& chosen) {
  CLI::App* command =
      program.add_subcommand("ping", "Send ICMP echo requests through one interface");
  auto request = std::make_shared<PingRequest>();
  command->add_option("--interface", request->interface, "Interface to send through")->required();
  command->add_option("--address", request->address, "IPv4 or IPv6 address")->required();
  command->add_option("--count", request->count, "Number of requests")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command->callback(
      [&chosen, request] { chosen = [request] { return writeVerdict(ping(*request)); }; });
}

}  // namespace vfpass::probe
