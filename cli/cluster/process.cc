#include "cli/cluster/process.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/random.h"
#include "base/text_file.h"

namespace troupe {
namespace {

constexpr int kFirstPort = 17000;
constexpr int kPorts = 15000;

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  int get() const { return value_; }

 private:
  int value_;
};

}  // namespace

std::optional<ProcessId> FindProcess(pid_t pid) {
  if (pid <= 0) return std::nullopt;
  const StatusOr<std::string> text = ReadTextFile(fmt::format("/proc/{}/stat", pid));
  if (!text.ok()) return std::nullopt;
  // The second field, the name in parentheses, may contain anything.
  const size_t bracket = text->rfind(')');
  if (bracket == std::string::npos) return std::nullopt;
  std::istringstream fields(text->substr(bracket + 1));
  std::string field;
  fields >> field;
  if (field == "Z" || field == "X") return std::nullopt;
  for (int number = 4; number <= 21; ++number) fields >> field;
  uint64_t start_ticks = 0;
  if (!(fields >> start_ticks)) return std::nullopt;
  return ProcessId{.pid = pid, .start_ticks = start_ticks};
}

bool IsAlive(const ProcessId& process) { return FindProcess(process.pid) == process; }

void SignalProcess(const ProcessId& process, int signal) {
  if (process.pid <= 0) return;
  const Descriptor descriptor(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
  if (descriptor.get() < 0 || !IsAlive(process)) return;
  syscall(SYS_pidfd_send_signal, descriptor.get(), signal, nullptr, 0);
}

void SignalGroup(const ProcessId& process, int signal) {
  if (process.pid <= 0 || !IsAlive(process)) return;
  // A process that was just forked has no group of its own yet.
  if (kill(-process.pid, signal) != 0) SignalProcess(process, signal);
}

StatusOr<ProcessId> StartDetached(const std::vector<std::string>& arguments,
                                  const std::string& log_path) {
  const Descriptor log(open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (log.get() < 0) return ErrnoStatus(errno, fmt::format("open {}", log_path));
  const Descriptor null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (null.get() < 0) return ErrnoStatus(errno, "open /dev/null");
  std::vector<char*> argv;
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  const pid_t pid = fork();
  if (pid < 0) return ErrnoStatus(errno, "fork");
  if (pid == 0) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    setsid();
    dup2(null.get(), STDIN_FILENO);
    dup2(log.get(), STDOUT_FILENO);
    dup2(log.get(), STDERR_FILENO);
    syscall(SYS_close_range, 3u, ~0u, 0u);
    execv(argv[0], argv.data());
    const char message[] = "cannot run the binary\n";
    (void)!write(STDERR_FILENO, message, sizeof message - 1);
    _exit(127);
  }
  // The pid cannot be recycled before the parent has reaped the process.
  if (auto process = FindProcess(pid)) return *process;
  return Internal("{} ended immediately; see {}", arguments[0], log_path);
}

StatusOr<std::string> BinaryFolder() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return ErrnoStatus(error.value(), "/proc/self/exe");
  return path.parent_path().string();
}

namespace {

// Returns a socket bound to `port` of 127.0.0.1; absent if the port is in use. With `reuse`, a port
// without a listener counts as free even if connections to it are in TIME_WAIT, as it does for a
// server.
StatusOr<std::optional<Descriptor>> Bind(int port, bool reuse) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return ErrnoStatus(errno, "socket");
  const int on = 1;
  if (reuse) setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return std::optional<Descriptor>();
  }
  return std::optional<Descriptor>(std::move(socket));
}

}  // namespace

bool IsPortFree(int port) {
  const auto bound = Bind(port, /*reuse=*/true);
  return bound.ok() && bound->has_value();
}

StatusOr<std::vector<int>> FindFreePorts(int count) {
  std::vector<int> ports;
  std::vector<Descriptor> held;
  // Different processes start their search at different ports.
  const uint64_t key = RandomKey(static_cast<uint64_t>(getpid()), "ports");
  const int begin = static_cast<int>(UniformBits(key, 0) % kPorts);
  for (int i = 0; i < kPorts && ports.size() < static_cast<size_t>(count); ++i) {
    const int port = kFirstPort + (begin + i) % kPorts;
    TROUPE_ASSIGN_OR_RETURN(std::optional<Descriptor> socket, Bind(port, /*reuse=*/false));
    if (!socket) continue;
    ports.push_back(port);
    held.push_back(*std::move(socket));
  }
  if (ports.size() < static_cast<size_t>(count)) {
    return ResourceExhausted("there are fewer than {} free ports from {} to {}", count, kFirstPort,
                             kFirstPort + kPorts - 1);
  }
  return ports;
}

}  // namespace troupe
