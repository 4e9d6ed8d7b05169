"""scripts/repository, with small packages made here: what apt and rpm accept of the repository, and what they refuse."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2] / "scripts/repository"
SPEC = """Name: vfpass
Version: %s
Release: 1
Summary: A package of a test
License: MIT
BuildArch: noarch
%%description
A package of a test
%%files
"""


class RepositoryTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.shared, True)
        cls.keyring = cls.shared / "keys"
        cls.keyring.mkdir(mode=0o700)
        cls.addClassCleanup(subprocess.run, ["gpgconf", "--kill", "gpg-agent"], env={**os.environ, "GNUPGHOME": str(cls.keyring)}, check=True)
        for name in ("right", "wrong"):
            cls.gpg("--passphrase", "", "--quick-generate-key", f"{name} key", "rsa2048", "sign", "never")
            (cls.shared / f"{name}.asc").write_bytes(cls.gpg("--armor", "--export", name))

    @classmethod
    def gpg(cls, *arguments):
        return subprocess.run(["gpg", "--batch", "--quiet", "--homedir", cls.keyring, *arguments], check=True,
                              capture_output=True).stdout

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.packages = self.folder / "packages"
        self.packages.mkdir()
        self.repository = self.folder / "repository"
        self.apt_directory = self.repository / "apt"

    def make_deb(self, name="vfpass", version="1.0-1", content="one", architecture="amd64"):
        root = self.folder / "root"
        shutil.rmtree(root, ignore_errors=True)
        (root / "DEBIAN").mkdir(parents=True)
        (root / "DEBIAN/control").write_text(f"Package: {name}\nVersion: {version}\nArchitecture: {architecture}\n"
                                             "Maintainer: A test <test@localhost>\nDescription: A package of a test\n")
        (root / "content").write_text(content)
        file = self.packages / f"{name}_{version}_{architecture}.deb"
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "--build", root, file], check=True, capture_output=True)
        return file

    def make_rpm(self, version="1.0"):
        spec = self.folder / "vfpass.spec"
        spec.write_text(SPEC % version)
        subprocess.run(["rpmbuild", "--quiet", "-bb", "--define", f"_rpmdir {self.packages}", "--define", f"_topdir {self.folder}/rpmbuild",
                        "--define", "_rpmfilename %%{NAME}-%%{VERSION}.rpm", spec], check=True, capture_output=True)

    def publish(self, *options, key="right key"):
        environment = {**os.environ, "GNUPGHOME": str(self.keyring), "VFPASS_SIGNING_KEY": key}
        return subprocess.run([REPOSITORY, *options, self.packages, self.repository], env=environment, capture_output=True, text=True, check=False)

    def published(self, *options, key="right key"):
        done = self.publish(*options, key=key)
        self.assertEqual(0, done.returncode, done.stderr)

    def apt(self, *command, key="right", release="bookworm"):
        """An apt-get with files of its own: with no package installed, and with this repository only."""
        state = self.folder / "state"
        for each in ("lists/partial", "cache/archives/partial", "parts"):
            (state / each).mkdir(parents=True, exist_ok=True)
        for each in ("status", "apt.conf"):
            (state / each).touch()
        (state / "sources.list").write_text(f"deb [arch=amd64 signed-by={self.shared}/{key}.asc] file:{self.apt_directory} {release} main\n")
        options = {"Dir::Etc::SourceList": state / "sources.list", "Dir::Etc::SourceParts": state / "parts", "Dir::State": state,
                   "Dir::State::status": state / "status", "Dir::Cache": state / "cache", "Dir::Etc::Parts": state / "parts",
                   "Dir::Etc::PreferencesParts": state / "parts", "APT::Architecture": "amd64", "APT::Sandbox::User": "root"}
        arguments = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        done = subprocess.run(["apt-get", "-qq", *arguments, *command], cwd=state, capture_output=True, text=True, check=False,
                              env={**os.environ, "LC_ALL": "C.UTF-8", "APT_CONFIG": str(state / "apt.conf")})
        self.output = done.stdout + done.stderr
        # `apt-get update` only warns of a repository that it refuses.
        return done.returncode == 0 and "W:" not in self.output and "E:" not in self.output

    def damage(self, file, old, new):
        content = file.read_bytes()
        self.assertIn(old, content)
        file.write_bytes(content.replace(old, new, 1))

    def test_apt_installs_from_it(self):
        built = self.make_deb()
        self.make_deb("vfpass-doc", architecture="all")
        self.published("--codename", "bookworm")
        self.assertTrue(self.apt("update"), self.output)
        self.assertTrue(self.apt("download", "vfpass"), self.output)
        self.assertEqual(built.read_bytes(), (self.folder / "state" / built.name).read_bytes())
        self.assertTrue(self.apt("install", "--simulate", "vfpass", "vfpass-doc"), self.output)
        self.assertIn("Inst vfpass-doc", self.output)

    def test_apt_refuses_another_key(self):
        self.make_deb()
        self.published("--codename", "bookworm")
        self.assertFalse(self.apt("update", key="wrong"))
        self.assertIn("NO_PUBKEY", self.output)
        self.assertFalse(self.apt("download", "vfpass", key="wrong"))

    def test_apt_refuses_a_repository_without_signature(self):
        self.make_deb()
        self.published("--codename", "bookworm")
        for name in ("InRelease", "Release.gpg"):
            (self.apt_directory / "dists/bookworm" / name).unlink()
        self.assertFalse(self.apt("update"))
        self.assertIn("is not signed", self.output)

    def test_apt_refuses_a_changed_release_file(self):
        self.make_deb()
        self.published("--codename", "bookworm")
        self.damage(self.apt_directory / "dists/bookworm/InRelease", b"Origin: vfpass", b"Origin: vfpast")
        self.assertFalse(self.apt("update"))
        self.assertIn("BADSIG", self.output)

    def test_apt_refuses_a_changed_index(self):
        self.make_deb()
        self.published("--codename", "bookworm")
        directory = self.apt_directory / "dists/bookworm/main/binary-amd64"
        self.damage(directory / "Packages", b"Version: 1.0-1", b"Version: 9.0-1")
        index = directory / "Packages.xz"
        content = bytearray(index.read_bytes())
        content[len(content) // 2] ^= 1
        index.write_bytes(content)
        self.assertFalse(self.apt("update"))
        self.assertFalse(self.apt("download", "vfpass"))

    def test_apt_refuses_a_changed_package(self):
        built = self.make_deb()
        self.published("--codename", "bookworm")
        self.assertTrue(self.apt("update"), self.output)
        self.damage(self.apt_directory / "pool/bookworm" / built.name, b"one", b"two")
        self.assertFalse(self.apt("download", "vfpass"))
        self.assertRegex(self.output, "[Hh]ash [Ss]um mismatch")

    def test_a_later_version_is_the_candidate_and_the_earlier_one_stays(self):
        earlier = self.make_deb()
        self.published("--codename", "bookworm")
        earlier.unlink()
        self.make_deb(version="1.1-1")
        self.published("--codename", "bookworm")
        self.assertTrue(self.apt("update"), self.output)
        self.assertTrue(self.apt("install", "--simulate", "vfpass"), self.output)
        self.assertIn("Inst vfpass (1.1-1 ", self.output)
        self.assertTrue(self.apt("download", "vfpass=1.0-1"), self.output)

    def test_each_release_has_its_own_build_of_a_version(self):
        for release in ("bookworm", "trixie"):
            built = self.make_deb(content=release)
            self.published("--codename", release)
        for release in ("trixie", "bookworm"):
            downloaded = self.folder / "state" / built.name
            downloaded.unlink(missing_ok=True)
            self.assertTrue(self.apt("update", release=release), self.output)
            self.assertTrue(self.apt("download", "vfpass", release=release), self.output)
            self.assertTrue(release.encode() in downloaded.read_bytes(), release)

    def test_one_build_for_several_releases(self):
        built = self.make_deb()
        self.published("--codename", "bookworm", "--codename", "trixie", "--codename", "forky")
        for release in ("bookworm", "trixie", "forky"):
            downloaded = self.folder / "state" / built.name
            downloaded.unlink(missing_ok=True)
            self.assertTrue(self.apt("update", release=release), self.output)
            self.assertTrue(self.apt("download", "vfpass", release=release), self.output)
            self.assertEqual(built.read_bytes(), downloaded.read_bytes(), release)

    def test_a_published_package_does_not_change(self):
        self.make_deb()
        self.published("--codename", "bookworm")
        before = (self.apt_directory / "dists/bookworm/InRelease").read_bytes()
        self.make_deb(content="other")
        done = self.publish("--codename", "bookworm")
        self.assertEqual(1, done.returncode)
        self.assertIn("exists with another content", done.stderr)
        self.assertEqual(before, (self.apt_directory / "dists/bookworm/InRelease").read_bytes())

    def test_another_key_signs_all_of_it(self):
        self.make_deb()
        self.make_rpm()
        self.published("--codename", "bookworm")
        self.published("--codename", "trixie", key="wrong key")
        self.assertFalse(self.apt("update"))
        self.assertTrue(self.apt("update", key="wrong"), self.output)
        self.assertFalse(self.rpm_accepts("right"))
        self.assertTrue(self.rpm_accepts("wrong"), self.output)

    def test_a_test_key_signs_without_one(self):
        self.make_deb()
        self.published("--codename", "bookworm", key="")
        shutil.copy(self.repository / "vfpass.asc", self.shared / "test.asc")
        self.assertIn("not for use", subprocess.run(["gpg", "--show-keys", self.shared / "test.asc"], check=True, capture_output=True, text=True).stdout)
        self.assertTrue(self.apt("update", key="test"), self.output)
        self.assertFalse(self.apt("update", key="right"))

    def test_mistakes(self):
        done = self.publish()
        self.assertIn("no packages", done.stderr)
        self.make_deb()
        for options, key, text in (((), "nobody", "gpg has 0 secret keys for nobody"), ((), "key", "gpg has 2 secret keys for key"),
                                   (("--codename", "bookworm", "--codename", "../x"), "right key", "expected the name of a Debian release")):
            done = self.publish(*options, key=key)
            self.assertEqual(1, done.returncode)
            self.assertIn(text, done.stderr)
        self.assertFalse(self.repository.exists())

    def rpm_accepts(self, key):
        """Whether rpm, with this key only, finds the package's signature."""
        database = self.folder / f"rpm-{key}"
        for arguments in (("--import", self.shared / f"{key}.asc"), ("--checksig", "--verbose", self.repository / "rpm/vfpass-1.0.rpm")):
            done = subprocess.run(["rpmkeys", "--dbpath", database, *arguments], capture_output=True, text=True, check=False)
        self.output = done.stdout + done.stderr
        return done.returncode == 0 and re.search(r"Signature, key ID \w+: OK", self.output) is not None

    def verify_repodata(self, key):
        keyring = self.folder / f"{key}.gpg"
        subprocess.run(["gpg", "--batch", "--yes", "--dearmor", "--output", keyring, self.shared / f"{key}.asc"], check=True)
        data = self.repository / "rpm/repodata/repomd.xml"
        return subprocess.run(["gpgv", "--keyring", keyring, f"{data}.asc", data], capture_output=True, check=False).returncode == 0

    def test_rpm(self):
        self.make_rpm()
        self.published()
        self.assertTrue(self.rpm_accepts("right"), self.output)
        self.assertFalse(self.rpm_accepts("wrong"))
        self.assertTrue(self.verify_repodata("right"))
        self.assertFalse(self.verify_repodata("wrong"))
        # What is signed leads to the package: repomd.xml has the sum of primary.xml, and that the sum of the file.
        names = {"repo": "http://linux.duke.edu/metadata/repo"}
        parts = ElementTree.parse(self.repository / "rpm/repodata/repomd.xml").findall("repo:data", names)
        self.assertIn("primary", [part.get("type") for part in parts])
        for part in parts:
            content = (self.repository / "rpm" / part.find("repo:location", names).get("href")).read_bytes()
            self.assertEqual(part.find("repo:checksum", names).text, hashlib.sha256(content).hexdigest())
        self.published()  # an rpm that is signed already
        self.assertTrue(self.rpm_accepts("right"), self.output)
        file = self.repository / "rpm/vfpass-1.0.rpm"
        content = bytearray(file.read_bytes())
        content[-40] ^= 1
        file.write_bytes(content)
        self.assertFalse(self.rpm_accepts("right"))


if __name__ == "__main__":
    unittest.main()
