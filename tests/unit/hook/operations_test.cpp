#include "operations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake/temporary_folder.hpp"
#include "vfpass/state/database.hpp"
#include "vfpass/state/verification_records.hpp"

namespace vfpass::hook {
namespace {

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

}  // namespace
}  // namespace vfpass::hook
