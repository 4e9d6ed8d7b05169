#include "operations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "fake/temporary_folder.hpp"
#include "vfpass/host/system_kernel.hpp"
#include "vfpass/state/database.hpp"
#include "vfpass/state/verification_records.hpp"

namespace vfpass::hook {
namespace {

// A host whose database is lost, and the XML of a domain with a lease. Its device is nowhere, so
// that no device of this machine is touched, and its lease is not rebuilt: only its generation is
// recorded.
class LostDatabase {
 public:
  LostDatabase() {
    std::ofstream(places.sealKey.machineId) << "0123456789abcdef0123456789abcdef\n";
    const std::string bare =
        "<domain type='kvm'><name>train0</name><uuid>" + toString(uuid) +
        "</uuid><os><type machine='q35'>hvm</type></os><devices>"
        "<controller type='pci' index='0' model='pcie-root'/></devices></domain>";
    Lease lease;
    lease.part = LeasedFunction{};
    lease.domain = uuid;
    lease.domainName = "train0";
    lease.entry = "gpu0";
    lease.pf = lease.device = *parsePciAddress("fffe:ff:1f.0");
    lease.guest = domain::placeDevices(bare, 1).front();
    lease.generation = 7;
    xml = domain::withLeases(bare, {lease}, domain::builtInTemplates(),
                             state::makeSealKey(places.sealKey));
  }
  [[nodiscard]] std::uint64_t lastGeneration() const {
    return state::Database(places.stateDirectory, state::Database::Open::createIfMissing,
                           std::chrono::seconds(2))
        .lastGeneration();
  }

 private:
  fake::TemporaryFolder temporary_;

 public:
  Uuid uuid = *parseUuid("0f5e9a3c-1111-4222-8333-944455566677");
  std::string xml;
  Places places{temporary_.path() / "state",
                temporary_.path() / "run",
                std::chrono::steady_clock::now() + std::chrono::minutes(1),
                {temporary_.path() / "etc", temporary_.path() / "machine-id"}};
};

TEST(ReleaseOperation, RebuildsTheLeasesOfALostDatabase) {
  const LostDatabase host;
  release(host.uuid, host.xml, host.places);
  EXPECT_EQ(host.lastGeneration(), 7U);
}

TEST(ReleaseOperation, RebuildsNoLeasesOfAnotherDomain) {
  const LostDatabase host;
  release(*parseUuid("0f5e9a3c-1111-4222-8333-944455566678"), host.xml, host.places);
  EXPECT_EQ(host.lastGeneration(), 0U);
}

// The device is left to the recovery of the attach, which has to know that its guest is gone.
TEST(ReleaseOperation, ReturnsTheLeaseOfADeviceThatWasYetToBePluggedIn) {
  const fake::TemporaryFolder folder;
  const Places places{folder.path() / "state", folder.path() / "run",
                      std::chrono::steady_clock::now() + std::chrono::minutes(1)};
  Lease lease;
  lease.part = LeasedFunction{};
  lease.domain = *parseUuid("0f5e9a3c-1111-4222-8333-944455566677");
  lease.entry = "gpu0";
  lease.pf = lease.device = *parsePciAddress("fffe:ff:1f.0");
  lease.generation = 1;
  lease.state = LeaseState::running;
  lease.bootId = host::SystemKernel().bootId();
  const std::string bare = "<domain type='kvm'><name>train0</name><uuid>" + toString(lease.domain) +
                           "</uuid><devices/></domain>";
  state::Database database(places.stateDirectory, state::Database::Open::createIfMissing,
                           std::chrono::seconds(2));
  database.recordLease(lease);
  database.beginOperation({PlanKind::attach,
                           lease.domain,
                           "train0",
                           {{PlugDevice{lease}, {UnplugDevice{lease}}, "", false}},
                           {}},
                          lease.bootId);
  release(lease.domain, bare, places);
  EXPECT_EQ(database.leases().at(0).state, LeaseState::reserved);
}

TEST(ReleaseOperation, EndsTheVerificationThatIsPendingSinceTheStart) {
  const fake::TemporaryFolder folder;
  const Places places{folder.path() / "state", folder.path() / "run",
                      std::chrono::steady_clock::now() + std::chrono::minutes(1)};
  Lease lease;
  lease.domain = *parseUuid("0f5e9a3c-1111-4222-8333-944455566677");
  lease.entry = "rail0";
  lease.pf = *parsePciAddress("0000:01:00.0");
  lease.device = *parsePciAddress("0000:01:00.1");
  lease.generation = 1;
  state::Database(places.stateDirectory, state::Database::Open::createIfMissing,
                  std::chrono::seconds(2))
      .recordLease(lease);
  const Uuid other = *parseUuid("0f5e9a3c-1111-4222-8333-944455566678");
  state::markStarted(places.runDirectory, lease.domain);
  state::markStarted(places.runDirectory, other);
  release(lease.domain, "", places);
  EXPECT_THAT(state::startedMarks(places.runDirectory),
              testing::ElementsAre(state::StartedMark{other}));
}

// A lease of the running guest, whose device is nowhere, beside an operation that is not finished.
class UnfinishedOperation {
 public:
  UnfinishedOperation() {
    lease_.part = LeasedFunction{};
    lease_.domain = *parseUuid("0f5e9a3c-1111-4222-8333-944455566677");
    lease_.entry = "gpu0";
    lease_.pf = lease_.device = *parsePciAddress("fffe:ff:1f.0");
    lease_.generation = 1;
    lease_.state = LeaseState::running;
    lease_.adoptedElement = "<hostdev/>";
    std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), lease_.bootId);
    database_.setCurrentBoot(lease_.bootId);
    database_.recordLease(lease_);
  }
  [[nodiscard]] const Lease& lease() const { return lease_; }

  void begin(PlanKind kind, const Action& action, const std::vector<Action>& inverse = {}) {
    database_.beginOperation({kind, lease_.domain, "train0", {{action, inverse, ""}}, {}},
                             lease_.bootId);
  }
  LeaseState stateAfterTheStop() {
    release(lease_.domain, "", places_);
    return database_.leasesOf(lease_.domain).front().state;
  }

 private:
  fake::TemporaryFolder folder_;
  Places places_{folder_.path() / "state", folder_.path() / "run",
                 std::chrono::steady_clock::now() + std::chrono::minutes(1)};
  state::Database database_{places_.stateDirectory, state::Database::Open::createIfMissing,
                            std::chrono::seconds(2)};
  Lease lease_;
};

Action dropOf(const Lease& lease, std::optional<HandedOver> handedOver = std::nullopt) {
  return DropLease{lease.domain, lease.entry, lease.generation, lease.pf, std::move(handedOver)};
}

TEST(ReleaseOperation, ResetsADeviceThatADetachGivesBack) {
  UnfinishedOperation host;
  host.begin(PlanKind::detach,
             dropOf(host.lease(), HandedOver{"train0", host.lease().device, std::nullopt}));
  EXPECT_EQ(host.stateAfterTheStop(), LeaseState::reserved);
}

TEST(ReleaseOperation, LeavesADeviceThatADetachLeavesWithTheDomain) {
  UnfinishedOperation host;
  host.begin(PlanKind::detach, dropOf(host.lease()));
  EXPECT_EQ(host.stateAfterTheStop(), LeaseState::running);
}

TEST(ReleaseOperation, LeavesADeviceThatAnAttachTakesOver) {
  UnfinishedOperation host;
  host.begin(PlanKind::attach, RecordLease{host.lease()}, {dropOf(host.lease())});
  EXPECT_EQ(host.stateAfterTheStop(), LeaseState::running);
}

TEST(ReleaseOperation, ResetsADeviceThatWasTakenOverBefore) {
  UnfinishedOperation host;
  host.begin(PlanKind::attach, RecordLease{host.lease()}, {RecordLease{host.lease()}});
  EXPECT_EQ(host.stateAfterTheStop(), LeaseState::reserved);
}

}  // namespace
}  // namespace vfpass::hook
