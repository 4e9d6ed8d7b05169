#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "guest_devices.hpp"
#include "host_observer.hpp"
#include "rdma_counters.hpp"
#include "verification_steps.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/libvirt/libvirt_hypervisor.hpp"
#include "vfpass/remote/remote_host.hpp"
#include "vfpass/verify/verify_pair.hpp"

namespace vfpass::commands {
namespace {

using remote::PeerPlace;

void requireAnotherVm(const DomainDescription& peer, const DomainDescription& domain) {
  if (peer.uuid == domain.uuid) {
    throw Error("--peer: same VM as the verified one", "specify another VM, or omit --peer",
                ExitCode::badInput);
  }
}

/// A VM of this host.
class LocalPeer {
 public:
  LocalPeer(Session& session, const DomainDescription& domain)
      : session_(session),
        domain_(domain),
        host_(session, domain, wantedInGuest(session, domain)),
        rdma_(rdmaOf(session, runningVfs(session, domain))) {}

  [[nodiscard]] const RdmaCounters& rdma() const { return rdma_; }

  [[nodiscard]] verify::PairGuest guest(agent::Agent& agent, std::vector<Lease> leases) const {
    return {agent,
            domain_.name,
            std::move(leases),
            [this](const Lease& lease) { return host_.of(lease); },
            [this](const Lease& lease) { return trafficOf(session_, lease); },
            nvlinkOf(session_, domain_),
            host_.gpus(),
            {},
            {},
            {},
            host_.placement(),
            [this](const Lease& lease) { return rdma_.of(lease); },
            fabricManagerOf(session_, domain_)};
  }

 private:
  static RdmaCounters rdmaOf(Session& session, const std::vector<Lease>& vfs) {
    return {vfs, rdmaReader(session, vfs)};
  }

  Session& session_;
  const DomainDescription& domain_;
  HostObserver host_;
  RdmaCounters rdma_;
};

/// The VM of another host, which is running. libvirt there is asked directly, its vfpass over ssh.
class RemotePeer {
 public:
  /// `connected`: when the domain has to be known; `observed`: when the last question has to be
  /// answered.
  RemotePeer(Session& session, const PeerPlace& place, const Deadline& connected,
             const Deadline& observed)
      : session_(session),
        place_(place),
        libvirt_(place, libvirt::connect, connected, checkpointOf(session)),
        domain_(findRunning(connected)) {
    try {
      host_.emplace(remote::observe(place, domain_.uuid, observed, checkpointOf(session)));
    } catch (const Error& error) {
      reason_ = error.what();
      remedy_ = error.remedy().empty()
                    ? "make `ssh " + shellArgument(place.host) +
                          " vfpass observe` work without a password, as root, with vfpass installed"
                    : error.remedy();
    }
  }

  [[nodiscard]] Hypervisor& hypervisor() const { return libvirt_.hypervisor(); }
  [[nodiscard]] const DomainDescription& domain() const { return domain_; }

  // From the metadata in its XML: they only tell which devices to look for in the guest.
  [[nodiscard]] std::vector<Lease> leases() const {
    const auto parsed = domain::parseDomain(domain_.liveXml);
    const auto plugged = domain::entriesWithDevice(domain_.liveXml, parsed.leases);
    std::vector<Lease> leases = vfLeases(parsed.leases);
    std::erase_if(leases, [&](const Lease& lease) {
      return !plugged.contains(lease.entry) || parsed.foreignMetadata;
    });
    if (leases.empty()) {
      throw Error("domain " + printable(place_.text) + ": running without a leased VF",
                  "run `vfpass attach " + shellArgument(domain_.name) + "` on its host",
                  ExitCode::unverified);
    }
    return leases;
  }

  [[nodiscard]] verify::PairGuest guest(agent::Agent& agent) const {
    verify::PairGuest guest{agent, place_.text, leases(), {}, {}, {}, {}};
    guest.machine = machine();
    if (!host_) {
      guest.unobserved = reason_;
      guest.unobservedRemedy = remedy_;
      return guest;
    }
    guest.host = [this](const Lease& lease) { return host_->host(lease.entry); };
    guest.traffic = [this](const Lease& lease) { return trafficThere(lease); };
    guest.rdma = [this](const Lease& lease) { return rdmaThere(lease); };
    guest.nvlink = host_->observation().nvlink;
    guest.gpus = host_->observation().gpus;
    guest.placement = host_->observation().placement;
    return guest;
  }

 private:
  // The name may be one of this host's own names.
  [[nodiscard]] std::string machine() const {
    const bool here = host_ && host_->observation().bootId == session_.kernel().bootId();
    return here ? "" : place_.host;
  }

  [[nodiscard]] std::optional<VfTraffic> trafficThere(const Lease& lease) const {
    try {
      return host_->traffic(lease.entry);
    } catch (const Error& error) {
      session_.warn(withRemedy(error));
      return std::nullopt;
    }
  }

  // An earlier vfpass does not know the question, and its host cannot tell either.
  [[nodiscard]] std::optional<VfTraffic> rdmaThere(const Lease& lease) const {
    try {
      return host_->rdma(lease.entry);
    } catch (const Error& error) {
      session_.verbose(error.what());
      return std::nullopt;
    }
  }

  [[nodiscard]] DomainDescription findRunning(const Deadline& deadline) const {
    const auto found = libvirt_.findDomain(place_.vm, deadline);
    if (!found) {
      throw Error("libvirt of " + printable(place_.host) + " has no domain " + printable(place_.vm),
                  "run `virsh --connect " + shellArgument(place_.uri) + " list --all`",
                  ExitCode::badInput);
    }
    if (!found->active) {
      throw Error("domain " + printable(place_.text) + " is not running",
                  "start it, then run `vfpass verify` again", ExitCode::unverified);
    }
    return *found;
  }

  Session& session_;
  const PeerPlace& place_;
  remote::RemoteLibvirt libvirt_;
  DomainDescription domain_;
  std::optional<remote::RemoteHost> host_;
  std::string reason_;
  std::string remedy_;
};

agent::Agent agentOf(Session& session, Hypervisor& hypervisor, const DomainDescription& domain,
                     std::chrono::seconds timeout) {
  return {hypervisor, domain.uuid, domain.name, timeout, checkpointOf(session)};
}

// The agents of the first two VMs are waited for first, then those of the further peers.
std::chrono::seconds longestWait(const VerifyRequest& request) {
  return static_cast<std::chrono::seconds::rep>(2 + request.furtherPeers.size()) * request.wait;
}

/// A VM of this or another host that takes part only in NCCL. Its agent runs programs only after
/// startAgent(): the time limit of an agent begins when it is made.
class FurtherPeer {
 public:
  FurtherPeer(Session& session, const PeerPlace& place, const VerifyRequest& request,
              std::chrono::seconds timeout) {
    if (place.isRemote()) {
      remote_.emplace(session, place, Deadline(timeout), Deadline(timeout + longestWait(request)));
      domain_ = remote_->domain();
    } else {
      domain_ = runningGuest(session, place.vm, "verify");
      local_.emplace(session, domain_);
      leases_ = runningVfs(session, domain_);
    }
    hypervisor_ = remote_ ? &remote_->hypervisor() : &session.hypervisor();
    waitForAgent(session, *hypervisor_, domain_, request.wait);
  }
  FurtherPeer(const FurtherPeer&) = delete;
  FurtherPeer& operator=(const FurtherPeer&) = delete;

  [[nodiscard]] const DomainDescription& domain() const { return domain_; }
  void startAgent(Session& session, std::chrono::seconds timeout) {
    agent_.emplace(agentOf(session, *hypervisor_, domain_, timeout));
  }
  /// Only after startAgent().
  [[nodiscard]] verify::PairGuest guest() {
    return remote_ ? remote_->guest(*agent_) : local_->guest(*agent_, leases_);
  }

 private:
  DomainDescription domain_;
  std::optional<RemotePeer> remote_;
  std::optional<LocalPeer> local_;
  std::vector<Lease> leases_;
  Hypervisor* hypervisor_ = nullptr;
  std::optional<agent::Agent> agent_;
};

/// Opens them and waits for their agents before the verification, so that a name that does not
/// exist is found at once and waiting takes nothing from the time limit of any agent.
class FurtherPeers {
 public:
  FurtherPeers(Session& session, const VerifyRequest& request, std::chrono::seconds timeout,
               const std::vector<Uuid>& others) {
    std::vector<Uuid> known = others;
    for (const PeerPlace& place : request.furtherPeers) {
      peers_.push_back(std::make_unique<FurtherPeer>(session, place, request, timeout));
      const Uuid& uuid = peers_.back()->domain().uuid;
      if (std::ranges::find(known, uuid) != known.end()) {
        throw Error("--peer " + printable(place.text) + ": a VM that was named before",
                    "name each VM once", ExitCode::badInput);
      }
      known.push_back(uuid);
      text_ += ", " + place.text;
    }
  }

  /// For the report: `, host3:VM3`; empty without further peers.
  [[nodiscard]] const std::string& text() const { return text_; }
  void startAgents(Session& session, std::chrono::seconds timeout) const {
    for (const auto& each : peers_) {
      each->startAgent(session, timeout);
    }
  }
  void addTo(std::vector<verify::PairGuest>& guests) const {
    for (const auto& each : peers_) {
      guests.push_back(each->guest());
    }
  }

 private:
  std::vector<std::unique_ptr<FurtherPeer>> peers_;
  std::string text_;
};

VerifyReport verifyWithLocal(Session& session, const DomainDescription& domain,
                             const VerifyRequest& request) {
  const DomainDescription peer = runningGuest(session, request.peer->vm, "verify");
  requireAnotherVm(peer, domain);
  const auto plan = verifyPlanFor(session, domain, request);
  const auto probe = agent::readProbeFile(request.probe);
  waitForAgent(session, session.hypervisor(), domain, request.wait);
  waitForAgent(session, session.hypervisor(), peer, request.wait);
  const auto timeout = timeoutOf(request, plan);
  const FurtherPeers further(session, request, timeout, {domain.uuid, peer.uuid});
  agent::Agent near = agentOf(session, session.hypervisor(), domain, timeout);
  agent::Agent far = agentOf(session, session.hypervisor(), peer, timeout);
  further.startAgents(session, timeout);
  const LocalPeer nearSide(session, domain);
  const LocalPeer farSide(session, peer);
  std::vector<verify::PairGuest> guests{nearSide.guest(near, plan.leases),
                                        farSide.guest(far, runningVfs(session, peer))};
  VerifyReport report = verifyPair(guests[0], guests[1], probe, plan, watchOf(session));
  nearSide.rdma().judgePairs("", report);
  farSide.rdma().judgePairs(peer.name + ":", report);
  report.peerName = peer.name + further.text();
  further.addTo(guests);
  addNccl(session, domain, request, guests, probe, plan, report.peerName, report);
  return report;
}

VerifyReport verifyWithRemote(Session& session, const DomainDescription& domain,
                              const VerifyRequest& request) {
  const auto plan = verifyPlanFor(session, domain, request);
  const auto probe = agent::readProbeFile(request.probe);
  const Deadline whole(timeoutOf(request, plan));  // waiting for the agents does not count
  const RemotePeer peer(session, *request.peer, whole,
                        Deadline(timeoutOf(request, plan) + longestWait(request)));
  const auto timeout = std::chrono::floor<std::chrono::seconds>(whole.left());
  requireAnotherVm(peer.domain(), domain);
  waitForAgent(session, session.hypervisor(), domain, request.wait);
  waitForAgent(session, peer.hypervisor(), peer.domain(), request.wait);
  const FurtherPeers further(session, request, timeout, {domain.uuid, peer.domain().uuid});
  agent::Agent near = agentOf(session, session.hypervisor(), domain, timeout);
  agent::Agent far = agentOf(session, peer.hypervisor(), peer.domain(), timeout);
  further.startAgents(session, timeout);
  const LocalPeer nearSide(session, domain);
  std::vector<verify::PairGuest> guests{nearSide.guest(near, plan.leases), peer.guest(far)};
  const RdmaCounters farRdma(guests[1].leases, guests[1].rdma);
  VerifyReport report = verifyPair(guests[0], guests[1], probe, plan, watchOf(session));
  nearSide.rdma().judgePairs("", report);
  farRdma.judgePairs(request.peer->text + ":", report);
  report.peerName = request.peer->text + further.text();
  further.addTo(guests);
  addNccl(session, domain, request, guests, probe, plan, report.peerName, report);
  return report;
}

}  // namespace

// The report belongs to the first VM; the peer is only its counterpart.
VerifyReport verifyWithPeer(Session& session, const DomainDescription& domain,
                            const VerifyRequest& request) {
  return request.peer->isRemote() ? verifyWithRemote(session, domain, request)
                                  : verifyWithLocal(session, domain, request);
}

}  // namespace vfpass::commands
