// Metadata in domain XML is untrusted input: only metadata that this host has sealed for this
// domain is adopted.
#include <SQLiteCpp/Database.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake/seal_key.hpp"
#include "test_host.hpp"
#include "vfpass/apply/adopt_leases.hpp"

namespace vfpass::apply {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Two domains on one PF; the host steps act on the first one in the hypervisor's list.
class TwoDomains : public Host {
 public:
  TwoDomains() {
    auto other = hypervisor.domains[0];
    other.uuid = otherUuid;
    other.name = "train1";
    replace(other.persistentXml.text(), toString(uuid), toString(otherUuid));
    replace(other.persistentXml.text(), "train0", "train1");
    hypervisor.domains.push_back(other);
    mapping.vfs.pop_back();
    kernel.pfs.begin()->second.serial = "MT1";
  }

  // Makes the next steps act on the other domain.
  void turn() {
    std::swap(hypervisor.domains[0], hypervisor.domains[1]);
    uuid = hypervisor.domains[0].uuid;
  }

  void loseDatabase() const { std::filesystem::remove_all(folder / "state"); }

  Adoption adopt(const std::vector<domain::ParsedDomain>& domains,
                 const std::vector<Uuid>& active = {}) {
    state::Database database(folder / "state", state::Database::Open::createIfMissing,
                             std::chrono::milliseconds(1000));
    return adoptLeases(database, kernel, fake::sealKey(), domains, active);
  }
  Adoption adoptAll() { return adopt({parsed(0), parsed(1)}); }
  std::vector<RefusedMetadata> refused() {
    const state::Database database(folder / "state", state::Database::Open::readOnly,
                                   std::chrono::milliseconds(1000));
    return refusedMetadata(database, kernel, fake::sealKey(), {parsed(0), parsed(1)});
  }
  [[nodiscard]] domain::ParsedDomain parsed(std::size_t at) const {
    return domain::parseDomain(hypervisor.domains[at].persistentXml);
  }

  static void replace(std::string& text, const std::string& from, const std::string& to) {
    const auto at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  }

  Uuid otherUuid = *parseUuid("0f5e9a3c-2222-4222-8333-944455566677");
};

std::string onlyReason(const std::vector<RefusedMetadata>& refused) {
  EXPECT_THAT(refused, SizeIs(1));
  return refused.empty() ? "" : refused[0].domainName + ": " + refused[0].reason;
}

// A helper process could not be started, or the driver does not answer: the device is not missing.
TEST(Adopt, SaysThatADeviceCouldNotBeRead) {
  TwoDomains host;
  host.attach();
  host.loseDatabase();
  host.kernel.unreadable = true;
  const auto adoption = host.adopt({host.parsed(0)});
  EXPECT_THAT(adoption.adopted, IsEmpty());
  ASSERT_THAT(adoption.refused, SizeIs(1));
  EXPECT_TRUE(adoption.refused[0].unread);
  EXPECT_THAT(adoption.refused[0].reason, HasSubstr("cannot start a process"));
  host.kernel.unreadable = false;
  EXPECT_THAT(host.adopt({host.parsed(0)}).adopted, SizeIs(1));
}

TEST(Adopt, RebuildsLeasesOfALostDatabase) {
  Host host;
  host.attach();
  const auto known = host.leases();
  std::filesystem::remove_all(host.folder / "state");
  state::Database database(host.folder / "state", state::Database::Open::createIfMissing,
                           std::chrono::milliseconds(1000));
  const auto parsed = domain::parseDomain(host.xml());
  const auto adopt = [&] {
    return adoptLeases(database, host.kernel, fake::sealKey(), {parsed}, {});
  };
  EXPECT_THAT(adopt().adopted, SizeIs(2));
  EXPECT_EQ(database.leases(), known);
  EXPECT_THAT(adopt().adopted, IsEmpty());
  EXPECT_THAT(adopt().refused, IsEmpty());
  EXPECT_EQ(database.lastGeneration(), known[0].generation);
}

TEST(Adopt, RebuildsAllLeasesOrNone) {
  Host host;
  host.attach();
  const auto parsed = domain::parseDomain(host.xml());
  std::filesystem::remove_all(host.folder / "state");
  state::Database database(host.folder / "state", state::Database::Open::createIfMissing,
                           std::chrono::milliseconds(1000));
  SQLite::Database sqlite((host.folder / "state" / "vfpass.db").string(), SQLite::OPEN_READWRITE);
  sqlite.exec(
      "CREATE TRIGGER full BEFORE INSERT ON leases WHEN NEW.vf_name = 'rail1' BEGIN SELECT "
      "RAISE(ABORT, 'the disk is full'); END");
  EXPECT_THROW(adoptLeases(database, host.kernel, fake::sealKey(), {parsed}, {}), Error);
  EXPECT_THAT(database.leases(), IsEmpty());
  sqlite.exec("DROP TRIGGER full");
  EXPECT_THAT(adoptLeases(database, host.kernel, fake::sealKey(), {parsed, parsed}, {}).adopted,
              SizeIs(2));
  EXPECT_THAT(database.leases(), SizeIs(2));
}

TEST(Adopt, EarlierHookCallOfAnotherDomainDoesNotPreventIt) {
  TwoDomains host;
  host.attachPlan();
  const std::string before = host.fingerprint();
  host.attach();
  host.turn();
  host.attach();
  host.loseDatabase();

  EXPECT_THAT(host.adopt({host.parsed(0)}).adopted, SizeIs(1))
      << "by the hook, only for the second";
  host.execute(host.preparePlan());
  EXPECT_THAT(host.adoptAll().adopted, SizeIs(1)) << "by recover";

  host.stop();
  host.execute(host.detachPlan());
  host.turn();
  ASSERT_THAT(host.leases(), SizeIs(1));
  host.execute(host.detachPlan());
  EXPECT_EQ(host.fingerprint(), before);
}

TEST(Adopt, StaleXmlDoesNotRebuildADroppedLease) {
  TwoDomains host;
  host.attach();
  const auto stale = host.parsed(0);
  host.execute(host.detachPlan());
  host.turn();
  host.attach();
  EXPECT_THAT(onlyReason(host.adopt({stale}).refused),
              HasSubstr("train0: cannot rebuild lease rail0: it has ended"));
  EXPECT_THAT(host.leases(), SizeIs(1));
}

TEST(Adopt, RefusesCopyWithAnotherUuidAndHigherGeneration) {
  TwoDomains host;
  host.attach();
  auto& copy = host.hypervisor.domains[1].persistentXml.text();
  copy = host.xml();
  TwoDomains::replace(copy, "<uuid>" + toString(host.uuid), "<uuid>" + toString(host.otherUuid));
  TwoDomains::replace(copy, "<name>train0", "<name>train1");
  TwoDomains::replace(copy, "\"generation\":1,", "\"generation\":4000000000,");
  const auto before = host.leases();
  EXPECT_THAT(onlyReason(host.adoptAll().refused), HasSubstr("train1: "));
  EXPECT_THAT(onlyReason(host.refused()), HasSubstr("the XML was copied"));

  // Whoever copies the XML can also write the UUID of the copy into the metadata.
  TwoDomains::replace(copy, "uuid=\"" + toString(host.uuid), "uuid=\"" + toString(host.otherUuid));
  host.loseDatabase();
  const auto adoption = host.adopt({host.parsed(1), host.parsed(0)});
  EXPECT_THAT(onlyReason(adoption.refused), HasSubstr("wrong seal"));
  EXPECT_THAT(adoption.adopted, SizeIs(1));
  EXPECT_EQ(host.leases(), before);
  state::Database database(host.folder / "state", state::Database::Open::createIfMissing,
                           std::chrono::milliseconds(1000));
  EXPECT_EQ(database.nextGeneration(), 2U);
}

TEST(Adopt, RefusesForgedFunctionLease) {
  TwoDomains host;
  host.kernel.addFunction("0000:41:00.0", "mlx5_core");
  Lease forged;
  forged.domain = host.otherUuid;
  forged.entry = "nic";
  forged.part = LeasedFunction{};
  forged.pf = forged.device = *parsePciAddress("0000:41:00.0");
  forged.pfPath = host.kernel.functions.begin()->second.path;
  forged.persistent = false;
  forged.generation = 1'000'000;
  auto& xml = host.hypervisor.domains[1].persistentXml.text();
  const SealKey guessed{std::vector<std::uint8_t>(32), fake::sealKey().hostId};
  for (const SealKey& key : {SealKey{}, guessed}) {
    xml = domain::withLeases(domain::withLeases(xml, {}, domain::builtInTemplates(), {}), {forged},
                             domain::builtInTemplates(), key);
    EXPECT_THAT(onlyReason(host.adoptAll().refused), HasSubstr("seal"));
    EXPECT_THAT(host.leases(), IsEmpty());
  }
}

TEST(Adopt, RefusesSealedLeaseOfAnotherCard) {
  TwoDomains host;
  host.attach();
  host.loseDatabase();
  host.kernel.pfs.begin()->second.serial = "MT2";
  EXPECT_THAT(onlyReason(host.adoptAll().refused), HasSubstr("has serial number 'MT2'"));
  EXPECT_THAT(onlyReason(host.refused()), HasSubstr("has serial number 'MT2'"));
  EXPECT_THAT(host.leases(), IsEmpty());
  host.kernel.pfs.clear();
  EXPECT_THAT(onlyReason(host.adoptAll().refused), HasSubstr("does not exist"));
  state::Database database(host.folder / "state", state::Database::Open::createIfMissing,
                           std::chrono::milliseconds(1000));
  EXPECT_EQ(database.nextGeneration(), 2U) << "its generation is not issued again";
}

TEST(Adopt, RefusesSealedLeaseOfALeasedVf) {
  TwoDomains host;
  host.attach();
  host.loseDatabase();
  host.turn();
  host.attach();
  EXPECT_THAT(onlyReason(host.adoptAll().refused), HasSubstr("is leased to domain"));
  EXPECT_THAT(host.leases(), SizeIs(1));
}

TEST(Adopt, InvalidMetadataOfOneDomainDoesNotAffectTheOther) {
  TwoDomains host;
  host.attach();
  host.loseDatabase();
  auto& xml = host.hypervisor.domains[1].persistentXml.text();
  TwoDomains::replace(xml, "  <devices>",
                      "  <metadata><d:domain xmlns:d='" + std::string(metadataNamespace) +
                          "' version='x'/></metadata>\n  <devices>");
  EXPECT_THAT(onlyReason(host.refused()), HasSubstr("train1: its vfpass metadata cannot be read"));
  EXPECT_THAT(host.adoptAll().adopted, SizeIs(1));
}

TEST(Adopt, NextAttachSealsUnsealedMetadata) {
  TwoDomains host;
  host.attach();
  auto& xml = host.hypervisor.domains[0].persistentXml.text();
  const auto at = xml.find(" seal=\"");
  ASSERT_NE(at, std::string::npos);
  xml.erase(at, 64 + std::string(" seal=\"\"").size());
  EXPECT_THAT(onlyReason(host.refused()), HasSubstr("has no seal"));
  EXPECT_NO_THROW(host.preparePlan()) << "the lease in the database is unchanged";
  host.attach();
  EXPECT_THAT(host.refused(), IsEmpty());
  EXPECT_TRUE(host.attachPlan().steps.empty());
}

TEST(Adopt, LeasesOfARunningDomainAreRunning) {
  TwoDomains host;
  host.attach();
  host.loseDatabase();
  EXPECT_THAT(host.adopt({host.parsed(0)}, {host.uuid}).adopted, SizeIs(1));
  EXPECT_EQ(host.leases().at(0).state, LeaseState::running);
  EXPECT_EQ(host.leases().at(0).bootId, host.kernel.bootId());
}

}  // namespace
}  // namespace vfpass::apply
