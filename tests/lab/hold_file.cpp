// Keeps a device open in a way that /proc/PID/fd of a process does not show, until it is killed.
// Usage: hold-file WAY FILE [ADDRESS]
//   thread   in the descriptor table of a thread
//   orphan   in a process whose main thread has ended
//   many     behind 66,000 other descriptors
//   queue    FILE is a VFIO group: its device ADDRESS, in the queue of a socket
//   map      FILE is a VFIO group: a mapping of a BAR of its device ADDRESS, after all is closed
#include <fcntl.h>
#include <linux/vfio.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <string>
#include <system_error>
#include <thread>

namespace {

int check(long result, const char* what) {
  if (result < 0) {
    throw std::system_error(errno, std::generic_category(), what);
  }
  return static_cast<int>(result);
}

int openFile(const std::string& file) { return check(::open(file.c_str(), O_RDWR), file.c_str()); }

void stay() {
  std::cout << "ready" << std::endl;
  for (;;) {
    ::pause();
  }
}

void holdInThread(const std::string& file) {
  std::thread([&] {
    check(::unshare(CLONE_FILES), "unshare");
    openFile(file);
    stay();
  }).join();
}

void holdWithoutMainThread(const std::string& file) {
  openFile(file);
  std::thread(stay).detach();
  ::syscall(SYS_exit, 0);  // of this thread only
}

void holdAmongMany(const std::string& file) {
  constexpr rlim_t count = 66000;
  const rlimit limit{count + 16, count + 16};
  check(::setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
  const int other = openFile("/dev/null");
  for (rlim_t made = 0; made < count; ++made) {
    check(::dup(other), "dup");
  }
  openFile(file);
  stay();
}

// A container, the group and the device.
std::array<int, 3> openDevice(const std::string& group, const std::string& address) {
  const int container = openFile("/dev/vfio/vfio");
  const int opened = openFile(group);
  check(::ioctl(opened, VFIO_GROUP_SET_CONTAINER, &container), "VFIO_GROUP_SET_CONTAINER");
  const bool withoutIommu = group.find("noiommu") != std::string::npos;
  check(::ioctl(container, VFIO_SET_IOMMU, withoutIommu ? VFIO_NOIOMMU_IOMMU : VFIO_TYPE1v2_IOMMU),
        "VFIO_SET_IOMMU");
  const int device =
      check(::ioctl(opened, VFIO_GROUP_GET_DEVICE_FD, address.c_str()), "VFIO_GROUP_GET_DEVICE_FD");
  return {container, opened, device};
}

void closeAll(const std::array<int, 3>& files) {
  for (const int file : files) {
    ::close(file);
  }
}

void holdInQueue(const std::string& group, const std::string& address) {
  const auto files = openDevice(group, address);
  std::array<int, 2> ends{};
  check(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), "socketpair");
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof files)> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof files);
  std::memcpy(CMSG_DATA(header), files.data(), sizeof files);
  check(::sendmsg(ends[0], &message, 0), "sendmsg");
  closeAll(files);
  stay();
}

void holdMapping(const std::string& group, const std::string& address) {
  const auto files = openDevice(group, address);
  for (unsigned index = VFIO_PCI_BAR0_REGION_INDEX; index <= VFIO_PCI_BAR5_REGION_INDEX; ++index) {
    vfio_region_info region{};
    region.argsz = sizeof region;
    region.index = index;
    if (::ioctl(files[2], VFIO_DEVICE_GET_REGION_INFO, &region) != 0 || region.size == 0 ||
        (region.flags & VFIO_REGION_INFO_FLAG_MMAP) == 0) {
      continue;
    }
    if (::mmap(nullptr, region.size, PROT_READ, MAP_SHARED, files[2],
               static_cast<off_t>(region.offset)) != MAP_FAILED) {
      closeAll(files);
      stay();
    }
  }
  throw std::runtime_error("no BAR can be mapped");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string way = argc > 2 ? argv[1] : "";
  try {
    if (way == "thread") {
      holdInThread(argv[2]);
    } else if (way == "orphan") {
      holdWithoutMainThread(argv[2]);
    } else if (way == "many") {
      holdAmongMany(argv[2]);
    } else if (way == "queue" && argc == 4) {
      holdInQueue(argv[2], argv[3]);
    } else if (way == "map" && argc == 4) {
      holdMapping(argv[2], argv[3]);
    }
    std::cerr << "usage: hold-file thread|orphan|many|queue|map FILE [ADDRESS]\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
