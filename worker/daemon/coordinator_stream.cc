#include "worker/daemon/coordinator_stream.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/open_calls.h"
#include "base/security/channel_arguments.h"
#include "base/security/credentials.h"
#include "troupe/v1/service.grpc.pb.h"
#include "worker/rank/utf8_texts.h"

namespace troupe {
namespace {

constexpr int kReceiveBytesMax = 64 << 20;
// A call that is cancelled ends at once unless gRPC's threads do not run.
constexpr auto kEndLimit = std::chrono::seconds(10);

// Lives from its call's start until OnDone, independently of other pointers to it.
class Reactor final : public grpc::ClientBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage>,
                      public std::enable_shared_from_this<Reactor> {
 public:
  // `open` is released after everything that refers to the channel. Sets `is_stale` before its end
  // is reported if the coordinator refuses access.
  Reactor(StreamCallbacks callbacks, size_t most_unwritten, std::shared_ptr<void> open,
          std::shared_ptr<std::atomic<bool>> is_stale)
      : open_(std::move(open)),
        callbacks_(std::move(callbacks)),
        most_unwritten_(most_unwritten),
        is_stale_(std::move(is_stale)) {}

  void Start(v1::WorkerService::Stub& stub) {
    self_ = shared_from_this();
    // Connects as soon as the coordinator is up; the session gives up after its lease.
    context_.set_wait_for_ready(true);
    stub.async()->Session(&context_, this);
    // Held until the end, because writes begin outside the reactions.
    AddHold();
    StartRead(&incoming_);
    StartCall();
  }

  void Send(v1::WorkerMessage message) {
    {
      const std::lock_guard lock(mutex_);
      if (ended_ || !cancelled_.empty()) return;
      if (queue_.size() < most_unwritten_) {
        queue_.push_back(std::move(message));
        if (queue_.size() == 1) StartWrite(&queue_.front());
        return;
      }
      cancelled_ = fmt::format("the coordinator does not read: {} messages wait", queue_.size());
    }
    Cancel();
  }

  bool has_ended() {
    const std::lock_guard lock(mutex_);
    return ended_;
  }

  void CancelBecause(const std::string& reason) {
    {
      const std::lock_guard lock(mutex_);
      if (ended_) return;
      if (cancelled_.empty()) cancelled_ = reason;
    }
    Cancel();
  }

  void Cancel() {
    context_.TryCancel();
    // Only a read learns of the end.
    {
      const std::lock_guard lock(mutex_);
      if (!std::exchange(is_paused_, false)) return;
    }
    StartRead(&incoming_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return End();
    v1::CoordinatorMessage message = std::exchange(incoming_, {});
    bool reads_on = false;
    {
      const std::lock_guard lock(mutex_);
      reads_on = ++unhandled_ < StreamCallbacks::kUnhandledMax;
      is_paused_ = !reads_on;
    }
    std::shared_ptr<void> turn(nullptr, [self = shared_from_this()](void*) { self->Handled(); });
    const Status accepted = callbacks_.on_message(std::move(message), std::move(turn));
    if (!accepted.ok()) Cancel();
    if (reads_on) StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    if (!ok || ended_) return;
    queue_.pop_front();
    if (!queue_.empty()) StartWrite(&queue_.front());
  }

  void OnDone(const grpc::Status& status) override {
    const bool access_refused = status.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
                                status.error_code() == grpc::StatusCode::PERMISSION_DENIED;
    if (access_refused) is_stale_->store(true);
    callbacks_.on_closed({EndReason(status), access_refused});
    self_.reset();
  }

 private:
  std::string EndReason(const grpc::Status& status) {
    const std::lock_guard lock(mutex_);
    if (!cancelled_.empty()) return cancelled_;
    return status.ok() ? "ended by the coordinator" : status.error_message();
  }

  void Handled() {
    {
      const std::lock_guard lock(mutex_);
      --unhandled_;
      if (!std::exchange(is_paused_, false)) return;
    }
    StartRead(&incoming_);
  }

  // No write begins after this.
  void End() {
    {
      const std::lock_guard lock(mutex_);
      if (ended_) return;
      ended_ = true;
    }
    RemoveHold();
  }

  const std::shared_ptr<void> open_;  // destroyed last
  StreamCallbacks callbacks_;
  const size_t most_unwritten_;
  const std::shared_ptr<std::atomic<bool>> is_stale_;
  grpc::ClientContext context_;
  v1::CoordinatorMessage incoming_;
  std::mutex mutex_;                     // guards the members below
  std::deque<v1::WorkerMessage> queue_;  // the first message is being written
  int unhandled_ = 0;                    // messages whose turns are not released
  bool is_paused_ = false;  // no read is in progress until one of them is, or until Cancel
  bool ended_ = false;
  std::string cancelled_;  // the reason for which this side has cancelled the call; else empty
  std::shared_ptr<Reactor> self_;
};

class Stream final : public CoordinatorStream {
 public:
  // Sets `is_stale` if the stream is destroyed before its end.
  Stream(std::shared_ptr<Reactor> reactor, std::shared_ptr<std::atomic<bool>> is_stale)
      : reactor_(std::move(reactor)), is_stale_(std::move(is_stale)) {}
  ~Stream() override {
    if (!reactor_->has_ended()) is_stale_->store(true);
    reactor_->Cancel();
  }
  void Send(v1::WorkerMessage message) override {
    // The report of a step is as a rank's frame had it, which only UTF-8 texts can be parsed from.
    if (!message.has_step_report()) MakeTextsUtf8(&message);
    reactor_->Send(std::move(message));
  }

 private:
  const std::shared_ptr<Reactor> reactor_;
  const std::shared_ptr<std::atomic<bool>> is_stale_;
};

}  // namespace

struct CoordinatorDialer::Channel {
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::WorkerService::Stub> stub;
  OpenCalls streams;
};

CoordinatorDialer::CoordinatorDialer(const std::string& address, const std::optional<TlsFiles>& tls,
                                     size_t most_unwritten)
    : address_(address), tls_(tls), most_unwritten_(most_unwritten), channel_(Connect()) {}

std::unique_ptr<CoordinatorDialer::Channel> CoordinatorDialer::Connect() const {
  grpc::ChannelArguments arguments = CoordinatorChannelArguments();
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  // Despite its name this limits how long one attempt to connect may take.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
  // A new channel does not take over the silent connection of a former one.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Manifests list every tensor and block of a checkpoint, so messages may be large.
  arguments.SetMaxReceiveMessageSize(kReceiveBytesMax);
  auto made = std::make_unique<Channel>();
  made->channel = grpc::CreateCustomChannel(
      address_, tls_ ? TlsChannelCredentialsOf(*tls_) : grpc::InsecureChannelCredentials(),
      arguments);
  made->stub = v1::WorkerService::NewStub(made->channel);
  return made;
}

// A channel whose credentials never had a usable certificate is not released by gRPC, with two
// threads (measured).
std::unique_ptr<CoordinatorDialer::Channel> CoordinatorDialer::ConnectIfStale() const {
  if (!is_stale_->exchange(false)) return nullptr;
  if (!tls_ || ReadUsableTls(*tls_, WallSeconds(SystemClock())).ok()) return Connect();
  is_stale_->store(true);
  return nullptr;
}

// gRPC joins its threads when its last channel is destroyed, and one of these threads cannot join
// itself (measured: a double free). So a channel must not be released last by a stream's end.
CoordinatorDialer::~CoordinatorDialer() {
  former_.push_back(std::move(channel_));
  for (std::unique_ptr<Channel>& channel : former_) {
    if (channel->streams.Wait(kEndLimit)) continue;
    LogWarning("worker", "a stream to the coordinator has not ended; its channel is not released");
    channel.release();
  }
}

std::unique_ptr<CoordinatorStream> CoordinatorDialer::Dial(StreamCallbacks callbacks) {
  std::unique_ptr<Channel> fresh = ConnectIfStale();
  const std::lock_guard lock(mutex_);
  if (fresh) Replace(std::move(fresh));
  auto reactor = std::make_shared<Reactor>(std::move(callbacks), most_unwritten_,
                                           channel_->streams.Begin(), is_stale_);
  reactor->Start(*channel_->stub);
  hang_up_ = [last = std::weak_ptr<Reactor>(reactor)](const std::string& reason) {
    if (const std::shared_ptr<Reactor> open = last.lock()) open->CancelBecause(reason);
  };
  return std::make_unique<Stream>(std::move(reactor), is_stale_);
}

void CoordinatorDialer::Replace(std::unique_ptr<Channel> made) {
  std::erase_if(former_, [](const auto& former) { return former->streams.Wait(Duration::zero()); });
  former_.push_back(std::exchange(channel_, std::move(made)));
}

void CoordinatorDialer::Reconnect(const std::string& reason) {
  std::unique_ptr<Channel> made = Connect();
  std::function<void(const std::string&)> hang_up;
  {
    const std::lock_guard lock(mutex_);
    Replace(std::move(made));
    hang_up = hang_up_;
  }
  if (hang_up) hang_up(reason);
}

}  // namespace troupe
