#include "collective/ucx/ucx_transport.h"

#include <openssl/sha.h>
#include <ucp/api/ucp.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "collective/ucx/endpoint_lanes.h"

namespace troupe {
namespace {

// An address consists of this text, the first bytes of the SHA-256 of UCX's address, and UCX's
// address. UCX trusts the addresses that it receives, so damage must be detected first.
constexpr std::string_view kAddressMagic = "troupe-ucx-1:";
constexpr size_t kChecksumBytes = 16;

// Disables the rendezvous protocol. Measured on virtual machines with two cores: cma, which UCX
// uses for the rendezvous, copies slower than UCX's shared queue, and the announcement costs an
// extra round trip. An eager send also needs no action of a receiver that computes. (Excluding cma
// from the transports instead makes UCX poll a TCP socket as well, 0.5 us per turn.) The engine
// bounds the messages in flight: four of 256 KiB per operation.
constexpr const char* kRendezvousThreshold = "inf";

// Slots of 8 KiB in a rank's shared-memory queue, shared by all its senders on the host. UCX's
// default of 64 holds half of one operation's messages in flight, so a sender would have to poll
// for a receiver that may have no core. 256 slots hold two operations.
constexpr const char* kQueueSlots = "256";

std::string Checksum(std::string_view bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  ::SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  return std::string(reinterpret_cast<const char*>(digest), kChecksumBytes);
}

Status UcxStatus(ucs_status_t status, std::string_view what) {
  const std::string text = fmt::format("{}: {}", what, ::ucs_status_string(status));
  switch (status) {
    case UCS_OK:
      return OkStatus();
    case UCS_ERR_CANCELED:
      return Cancelled("{}", text);
    case UCS_ERR_MESSAGE_TRUNCATED:
      return Internal("{}: the peer sent more bytes than expected", text);
    case UCS_ERR_NO_MEMORY:
      return ResourceExhausted("{}", text);
    default:
      return Unavailable("{}", text);
  }
}

void Finish(Transfer* transfer, Status status) {
  transfer->private_data = nullptr;
  transfer->status = std::move(status);
  transfer->done = true;
}

Status LengthStatus(size_t length, size_t expected) {
  if (length == expected) return OkStatus();
  return Internal("the peer sent {} bytes where {} were expected", length, expected);
}

void OnSent(void* request, ucs_status_t status, void* user_data) {
  auto* transfer = static_cast<Transfer*>(user_data);
  Finish(transfer, status == UCS_OK ? OkStatus() : UcxStatus(status, "send"));
  ::ucp_request_free(request);
}

void OnReceived(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                void* user_data) {
  auto* transfer = static_cast<Transfer*>(user_data);
  Finish(transfer, status == UCS_OK ? LengthStatus(info->length, transfer->bytes)
                                    : UcxStatus(status, "receive"));
  ::ucp_request_free(request);
}

struct Handles {
  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;

  void Free() {
    if (worker != nullptr) ::ucp_worker_destroy(worker);
    if (context != nullptr) ::ucp_cleanup(context);
    worker = nullptr;
    context = nullptr;
  }
};

class UcxTransport final : public Transport {
 public:
  UcxTransport() = default;

  // If a Close timed out, the worker is leaked until the process ends.
  ~UcxTransport() override {
    if (!closed_) handles_.Free();
  }

  Status Open(const UcxOptions& options) {
    ucp_config_t* config = nullptr;
    ucs_status_t status = ::ucp_config_read(nullptr, nullptr, &config);
    if (status != UCS_OK) return UcxStatus(status, "ucp_config_read");
    if (std::getenv("UCX_RNDV_THRESH") == nullptr) {
      status = ::ucp_config_modify(config, "RNDV_THRESH", kRendezvousThreshold);
    }
    if (status == UCS_OK && !options.transports.empty()) {
      status = ::ucp_config_modify(config, "TLS", options.transports.c_str());
    }
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
    if (status == UCS_OK) status = ::ucp_init(&params, config, &handles_.context);
    ::ucp_config_release(config);
    if (status != UCS_OK) return UcxStatus(status, "ucp_init");

    ucp_worker_params_t worker_params{};
    worker_params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker_params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    status = ::ucp_worker_create(handles_.context, &worker_params, &handles_.worker);
    if (status != UCS_OK) return UcxStatus(status, "ucp_worker_create");
    status = ::ucp_worker_get_efd(handles_.worker, &event_descriptor_);
    if (status != UCS_OK) return UcxStatus(status, "ucp_worker_get_efd");

    ucp_address_t* own = nullptr;
    size_t bytes = 0;
    status = ::ucp_worker_get_address(handles_.worker, &own, &bytes);
    if (status != UCS_OK) return UcxStatus(status, "ucp_worker_get_address");
    const std::string_view raw(reinterpret_cast<const char*>(own), bytes);
    address_ = std::string(kAddressMagic) + Checksum(raw) + std::string(raw);
    ::ucp_worker_release_address(handles_.worker, own);
    return OkStatus();
  }

  const std::string& address() const override { return address_; }

  Status Connect(int peer, const std::string& address) override {
    const size_t head = kAddressMagic.size() + kChecksumBytes;
    if (address.size() <= head || !address.starts_with(kAddressMagic)) {
      return InvalidArgument("its address of {} bytes is not one of this transport",
                             address.size());
    }
    const std::string raw = address.substr(head);
    if (Checksum(raw) != address.substr(kAddressMagic.size(), kChecksumBytes)) {
      return InvalidArgument("its address of {} bytes is damaged", address.size());
    }
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<const ucp_address_t*>(raw.data());
    ucp_ep_h endpoint = nullptr;
    const ucs_status_t status = ::ucp_ep_create(handles_.worker, &params, &endpoint);
    if (status == UCS_ERR_UNREACHABLE) {
      const char* const transports = std::getenv("UCX_TLS");
      return Unavailable("no transport of UCX_TLS={} reaches it",
                         transports == nullptr ? "all" : transports);
    }
    if (status != UCS_OK) return UcxStatus(status, "ucp_ep_create");
    if (endpoints_.size() <= static_cast<size_t>(peer)) {
      endpoints_.resize(static_cast<size_t>(peer) + 1, nullptr);
    }
    endpoints_[static_cast<size_t>(peer)] = endpoint;
    return OkStatus();
  }

  Link LinkTo(int peer) const override {
    char* text = nullptr;
    size_t bytes = 0;
    std::FILE* const stream = ::open_memstream(&text, &bytes);
    if (stream == nullptr) return {};
    ::ucp_ep_print_info(endpoints_[static_cast<size_t>(peer)], stream);
    std::fclose(stream);
    const Link link = LinkOfLanes({text, bytes});
    std::free(text);
    return link;
  }

  void Send(int peer, uint64_t tag, const void* data, size_t bytes, Transfer* transfer) override {
    ucp_request_param_t params;
    params.op_attr_mask =
        UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    params.cb.send = &OnSent;
    params.user_data = transfer;
    params.memory_type = UCS_MEMORY_TYPE_HOST;
    *transfer = Transfer{.done = false, .bytes = bytes};
    const ucs_status_ptr_t request =
        ::ucp_tag_send_nbx(endpoints_[static_cast<size_t>(peer)], data, bytes, tag, &params);
    if (request == nullptr) {
      transfer->done = true;
    } else if (UCS_PTR_IS_ERR(request)) {
      Finish(transfer, UcxStatus(UCS_PTR_STATUS(request), "send"));
    } else if (!transfer->done) {
      transfer->private_data = request;
    }
  }

  void Receive(int peer, uint64_t tag, void* data, size_t bytes, Transfer* transfer) override {
    // Always complete by the callback: UCX 1.13 does not always set the length when it completes at
    // once.
    ucp_request_param_t params;
    params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                          UCP_OP_ATTR_FIELD_MEMORY_TYPE | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    params.cb.recv = &OnReceived;
    params.user_data = transfer;
    params.memory_type = UCS_MEMORY_TYPE_HOST;
    *transfer = Transfer{.done = false, .bytes = bytes};
    const ucs_status_ptr_t request =
        ::ucp_tag_recv_nbx(handles_.worker, data, bytes, tag, ~uint64_t{0}, &params);
    if (UCS_PTR_IS_ERR(request)) {
      Finish(transfer, UcxStatus(UCS_PTR_STATUS(request), "receive"));
    } else if (!transfer->done) {
      transfer->private_data = request;
    }
  }

  void Cancel(Transfer* transfer) override {
    if (!transfer->done && transfer->private_data != nullptr) {
      ::ucp_request_cancel(handles_.worker, transfer->private_data);
    }
  }

  bool Progress() override { return ::ucp_worker_progress(handles_.worker) != 0; }

  int event_descriptor() const override { return event_descriptor_; }

  // After an error no event may come, so do not sleep; the caller's limits end the wait.
  bool Arm() override { return ::ucp_worker_arm(handles_.worker) == UCS_OK; }

  Status Close(bool flush, Duration limit) override {
    const auto now = [] { return std::chrono::steady_clock::now(); };
    const MonotonicTime end = now() + limit;
    closed_ = true;
    // A dead peer may block the flush forever, so flushing gets at most half of the time.
    if (flush) Flush(now() + limit / 2);

    // Destroying the worker closes its endpoints without contacting their peers. UCX's code may
    // block, so it runs in a thread that can be left behind.
    struct Shared {
      std::mutex mutex;
      std::condition_variable changed;
      bool finished = false;
    };
    const auto shared = std::make_shared<Shared>();
    std::thread destroyer([shared, handles = handles_]() mutable {
      handles.Free();
      std::lock_guard lock(shared->mutex);
      shared->finished = true;
      shared->changed.notify_all();
    });
    std::unique_lock lock(shared->mutex);
    if (shared->changed.wait_until(lock, end, [&] { return shared->finished; })) {
      lock.unlock();
      destroyer.join();
      return OkStatus();
    }
    destroyer.detach();
    return DeadlineExceeded("UCX did not release its worker within {:.3f} s", ToSeconds(limit));
  }

 private:
  void Flush(MonotonicTime end) {
    ucp_request_param_t params{};
    const ucs_status_ptr_t request = ::ucp_worker_flush_nbx(handles_.worker, &params);
    if (!UCS_PTR_IS_PTR(request)) return;
    while (::ucp_request_check_status(request) == UCS_INPROGRESS &&
           std::chrono::steady_clock::now() < end) {
      if (::ucp_worker_progress(handles_.worker) == 0) std::this_thread::yield();
    }
    ::ucp_request_free(request);
  }

  Handles handles_;
  bool closed_ = false;
  int event_descriptor_ = -1;
  std::string address_;
  std::vector<ucp_ep_h> endpoints_;  // by rank; null if there is none
};

}  // namespace

std::string UcxTransportName() {
  unsigned major = 0, minor = 0, release = 0;
  ::ucp_get_version(&major, &minor, &release);
  return fmt::format("ucx {}.{}.{}", major, minor, release);
}

void SizeUcxQueues() {
  for (const char* const name : {"UCX_POSIX_FIFO_SIZE", "UCX_SYSV_FIFO_SIZE"}) {
    ::setenv(name, kQueueSlots, /*overwrite=*/0);
  }
}

StatusOr<std::unique_ptr<Transport>> MakeUcxTransport(const UcxOptions& options) {
  auto transport = std::make_unique<UcxTransport>();
  TROUPE_RETURN_IF_ERROR(transport->Open(options));
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace troupe
