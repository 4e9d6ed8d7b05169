#include "vfpass/remote/peer_place.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "vfpass/error.hpp"

namespace vfpass::remote {
namespace {

using testing::HasSubstr;

std::string partsOf(const std::vector<std::string>& words) {
  const PeerPlace place = parsePeer(words);
  return place.vm + "|" + place.uri + "|" + place.user + "|" + place.host + "|" + place.port + "|" +
         place.text;
}

std::string refusalOf(const std::vector<std::string>& words) {
  try {
    return "accepted: " + partsOf(words);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::badInput);
    EXPECT_THAT(error.remedy(), HasSubstr("host2:VM2"));
    return error.what();
  }
}

TEST(PeerPlace, ReadsVmOfThisHost) {
  EXPECT_EQ(partsOf({"train1"}), "train1|||||train1");
  EXPECT_EQ(partsOf({"qemu:///system", "train1"}), "train1|||||train1");
}

TEST(PeerPlace, ReadsHostAndVm) {
  EXPECT_EQ(partsOf({"host2:train1"}),
            "train1|qemu+ssh://host2/system?no_tty=1||host2||host2:train1");
  EXPECT_EQ(partsOf({"root@host2.example.org:train:1"}),
            "train:1|qemu+ssh://root@host2.example.org/system?no_tty=1|root|host2.example.org||"
            "host2.example.org:train:1");
  EXPECT_EQ(partsOf({"[2001:db8::1]:train1"}),
            "train1|qemu+ssh://[2001:db8::1]/system?no_tty=1||2001:db8::1||2001:db8::1:train1");
}

TEST(PeerPlace, ReadsUriAndVm) {
  EXPECT_EQ(partsOf({"qemu+ssh://root@host2:2222/system", "train1"}),
            "train1|qemu+ssh://root@host2:2222/system|root|host2|2222|host2:train1");
  EXPECT_EQ(partsOf({"qemu+tls://host2:16514/system?pkipath=/etc/pki", "train1"}),
            "train1|qemu+tls://host2:16514/system?pkipath=/etc/pki||host2||host2:train1");
}

TEST(PeerPlace, RefusesWhatSshWouldTakeForAnOption) {
  EXPECT_THAT(refusalOf({"-oProxyCommand=sh:train1"}), HasSubstr("invalid host name"));
  EXPECT_THAT(refusalOf({"-l@host2:train1"}), HasSubstr("invalid user name"));
  EXPECT_THAT(refusalOf({"qemu+ssh://-oProxyCommand=sh/system", "train1"}),
              HasSubstr("invalid host name"));
  EXPECT_THAT(refusalOf({"host2;reboot:train1"}), HasSubstr("invalid host name"));
}

TEST(PeerPlace, RefusesPlacesWithoutVmOrWithTwo) {
  EXPECT_THAT(refusalOf({"host2:"}), HasSubstr("no VM after the host"));
  EXPECT_THAT(refusalOf({"qemu+ssh://host2/system"}), HasSubstr("no VM after the URI"));
  EXPECT_THAT(refusalOf({"qemu+ssh://host2/system", ""}), HasSubstr("no VM"));
  EXPECT_THAT(refusalOf({"train1", "train2"}), HasSubstr("more than one VM"));
  EXPECT_THAT(refusalOf({"[2001:db8::1:train1"}), HasSubstr("no ] after the address"));
}

TEST(PeerPlace, ReadsSeveralVmsAndTheUriBeforeOne) {
  const auto places = parsePeers({"train1", "qemu+ssh://host2/system", "train2", "host3:train3"});
  ASSERT_EQ(places.size(), 3U);
  EXPECT_EQ(places[0].text, "train1");
  EXPECT_EQ(places[1].text, "host2:train2");
  EXPECT_EQ(places[2].text, "host3:train3");
}

TEST(PeerPlace, RefusesSeveralVmsIfOneIsIncompleteOrThereTwice) {
  EXPECT_THROW(parsePeers({"train1", "qemu+ssh://host2/system"}), Error);
  EXPECT_THROW(parsePeers({"train1", "train1"}), Error);
}

TEST(PeerPlace, RefusesUrisOfAnotherKind) {
  EXPECT_THAT(refusalOf({"qemu+ssh://host2/session", "train1"}), HasSubstr("/system"));
  EXPECT_THAT(refusalOf({"xen+ssh://host2/system", "train1"}), HasSubstr("not a URI of a QEMU"));
  EXPECT_THAT(refusalOf({"qemu+ssh://host2:22x/system", "train1"}), HasSubstr("invalid port"));
}

}  // namespace
}  // namespace vfpass::remote
