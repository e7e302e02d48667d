#include "coordinator/kubernetes/api_client.h"

#include <curl/curl.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "base/file_system.h"
#include "base/security/listen_policy.h"
#include "base/text_file.h"

namespace troupe {
namespace {

constexpr long kConnectSeconds = 5;
constexpr long kCallSeconds = 10;
// Above timeoutSeconds of the request, at which the server ends a watch.
constexpr long kWatchSeconds = 330;
// The server sends a bookmark each minute, so a silent watch has lost its server.
constexpr long kSilentSeconds = 150;
constexpr Duration kTokenInterval = std::chrono::minutes(1);
constexpr size_t kMostAnswerBytes = size_t{256} << 20;
// An object has at most 1.5 MiB.
constexpr size_t kMostLineBytes = size_t{8} << 20;

constexpr std::string_view kHttps = "https://";
constexpr std::string_view kHttp = "http://";

void Initialize() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

struct FreeTransfer {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct FreeTransfers {
  void operator()(CURLM* handle) const { curl_multi_cleanup(handle); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

using Headers = std::unique_ptr<curl_slist, FreeList>;

void AddHeader(const std::string& line, Headers* headers) {
  if (curl_slist* const list = curl_slist_append(headers->get(), line.c_str())) {
    headers->release();
    headers->reset(list);
  }
}

// One request and the part of its answer that has arrived. Not movable: libcurl refers to it.
struct Transfer {
  std::unique_ptr<CURL, FreeTransfer> handle{curl_easy_init()};
  Headers headers;
  std::string body;
  std::string received;
  bool is_watch = false;
  char error[CURL_ERROR_SIZE] = "";
  bool is_done = false;
  CURLcode result = CURLE_OK;

  int code() const {
    long code = 0;
    curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &code);
    return static_cast<int>(code);
  }
  // The same text for the same error, because it is logged once: libcurl's own texts of these two
  // state how long they took.
  std::string ErrorText() const {
    const bool has_time = result == CURLE_OPERATION_TIMEDOUT || result == CURLE_COULDNT_CONNECT;
    return has_time || error[0] == '\0' ? curl_easy_strerror(result) : error;
  }
};

// Receives a part of an answer. A watch whose lines wait is paused; a result other than
// `size * count` otherwise ends the transfer.
size_t Receive(char* data, size_t size, size_t count, void* transfer) {
  auto* const into = static_cast<Transfer*>(transfer);
  std::string& received = into->received;
  const size_t bytes = size * count;
  if (into->is_watch && received.size() + bytes > kMostLineBytes)
    return received.find('\n') == std::string::npos ? 0 : CURL_WRITEFUNC_PAUSE;
  if (received.size() + bytes > kMostAnswerBytes) return 0;
  received.append(data, bytes);
  return bytes;
}

std::string HostOf(std::string_view url) {
  std::string_view rest = url.substr(url.find("://") + 3);
  rest = rest.substr(0, rest.find('/'));
  const size_t bracket = rest.find(']');
  if (bracket != rest.npos) return std::string(rest.substr(0, bracket + 1));
  return std::string(rest.substr(0, rest.find(':')));
}

// Returns the token of the service account; empty if there is none.
std::string ReadToken(const std::string& directory) {
  StatusOr<std::string> text = ReadTextFile(JoinPath(directory, "token"));
  if (!text.ok()) return {};
  text->resize(text->find_last_not_of(" \t\r\n") + 1);
  return *std::move(text);
}

}  // namespace

Status CheckApiClient(const ApiClientOptions& options) {
  const std::string& url = options.url;
  const bool has_user = url.find('@') != url.npos;  // then HostOf is not the host
  if (url.starts_with(kHttp) && !has_user) {
    if (IsLoopbackHost(HostOf(url))) return OkStatus();
    return InvalidArgument("{}: http is for the loopback only, because the token is a secret", url);
  }
  if (!url.starts_with(kHttps) || HostOf(url).empty() || has_user)
    return InvalidArgument("\"{}\" is not a URL such as https://HOST:PORT", url);
  const std::string path = JoinPath(options.directory, "ca.crt");
  PosixFileSystem files;
  return Annotate(files.Stat(path, SymbolicLinks::kFollow).status(),
                  fmt::format("{} needs {}", url, path));
}

class ApiClient::Connections {
 public:
  Connections(ApiClientOptions options, const Clock& clock)
      : options_(std::move(options)), clock_(clock) {
    Initialize();
    multi_.reset(curl_multi_init());
  }

  ApiAnswer Call(const ApiRequest& request) {
    Transfer transfer;
    Prepare(request, kCallSeconds, &transfer);
    curl_multi_add_handle(multi_.get(), transfer.handle.get());
    while (!transfer.is_done && !stops_) Drive(std::chrono::seconds(1));
    curl_multi_remove_handle(multi_.get(), transfer.handle.get());
    if (!transfer.is_done) return {.error = "the coordinator stops"};
    if (transfer.result != CURLE_OK) return {.error = transfer.ErrorText()};
    ApiAnswer answer{.code = transfer.code(), .body = std::move(transfer.received)};
    if (answer.code == 401) read_token_again_ = true;
    curl_off_t seconds = 0;
    curl_easy_getinfo(transfer.handle.get(), CURLINFO_RETRY_AFTER, &seconds);
    if (seconds > 0) answer.retry_after_seconds = static_cast<double>(seconds);
    return answer;
  }

  void OpenWatch(const std::string& path) {
    CloseWatch();
    watch_ = std::make_unique<Transfer>();
    Prepare({.path = path}, kWatchSeconds, watch_.get());
    watch_->is_watch = true;
    curl_easy_setopt(watch_->handle.get(), CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(watch_->handle.get(), CURLOPT_LOW_SPEED_TIME, kSilentSeconds);
    curl_multi_add_handle(multi_.get(), watch_->handle.get());
  }

  void CloseWatch() {
    if (watch_ != nullptr) curl_multi_remove_handle(multi_.get(), watch_->handle.get());
    watch_.reset();
  }

  WatchRead ReadWatch(Duration limit) {
    const MonotonicTime end = clock_.Now() + limit;
    Drive(Duration::zero());
    while (!HasLine() && !stops_ && !woken_.exchange(false)) {
      const MonotonicTime now = clock_.Now();
      if (now >= end) break;
      Drive(end - now);
    }
    return TakeLines();
  }

  void Wake() {
    woken_ = true;
    curl_multi_wakeup(multi_.get());
  }

  void Stop() {
    stops_ = true;
    Wake();
  }

 private:
  void Prepare(const ApiRequest& request, long seconds, Transfer* transfer) {
    CURL* const handle = transfer->handle.get();
    const std::string url = options_.url + request.path;
    curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
    curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_QUICK_EXIT, 1L);  // a name server may be silent
    curl_easy_setopt(handle, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    curl_easy_setopt(handle, CURLOPT_TIMEOUT, seconds);
    curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, transfer->error);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, Receive);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(handle, CURLOPT_PRIVATE, transfer);
    if (options_.url.starts_with(kHttps)) {
      const std::string authorities = JoinPath(options_.directory, "ca.crt");
      curl_easy_setopt(handle, CURLOPT_CAINFO, authorities.c_str());
    }
    AddHeader("Accept: application/json", &transfer->headers);
    const std::string& token = Token();
    if (!token.empty()) AddHeader("Authorization: Bearer " + token, &transfer->headers);
    if (!request.body.empty()) {
      transfer->body = request.body;
      AddHeader("Content-Type: " + request.content_type, &transfer->headers);
      AddHeader("Expect:", &transfer->headers);  // the body is sent at once
      curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE,
                       static_cast<curl_off_t>(transfer->body.size()));
      curl_easy_setopt(handle, CURLOPT_POSTFIELDS, transfer->body.data());
    }
    curl_easy_setopt(handle, CURLOPT_HTTPHEADER, transfer->headers.get());
  }

  const std::string& Token() {
    const MonotonicTime now = clock_.Now();
    if (!read_token_again_ && token_time_ && now - *token_time_ < kTokenInterval) return token_;
    read_token_again_ = false;
    token_time_ = now;
    token_ = ReadToken(options_.directory);
    return token_;
  }

  // Sends and receives what is possible, after at most `limit` of waiting for it.
  void Drive(Duration limit) {
    int running = 0;
    curl_multi_perform(multi_.get(), &running);
    NoteEnds();
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(limit).count();
    if (milliseconds == 0 || has_ended_) {
      has_ended_ = false;
      return;
    }
    curl_multi_poll(multi_.get(), nullptr, 0, static_cast<int>(milliseconds), nullptr);
    curl_multi_perform(multi_.get(), &running);
    NoteEnds();
    has_ended_ = false;
  }

  void NoteEnds() {
    int left = 0;
    while (const CURLMsg* const message = curl_multi_info_read(multi_.get(), &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      char* owner = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &owner);
      auto* const transfer = reinterpret_cast<Transfer*>(owner);
      transfer->result = message->data.result;
      transfer->is_done = true;
      has_ended_ = true;
    }
  }

  // The lines of a refused watch are not taken, so they are no reason to end a wait.
  bool HasLine() const {
    if (watch_ == nullptr) return false;
    return watch_->is_done ||
           (watch_->code() == HttpCode::kOk && watch_->received.find('\n') != std::string::npos);
  }

  WatchRead TakeLines() {
    WatchRead read;
    if (watch_ == nullptr) return read;
    std::string& text = watch_->received;
    size_t begin = 0;
    // The answer of a refused watch is no event.
    for (size_t end = text.find('\n'); end != text.npos && watch_->code() == HttpCode::kOk;
         end = text.find('\n', begin)) {
      if (end > begin) read.lines.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    text.erase(0, begin);
    if (!watch_->is_done) {
      curl_easy_pause(watch_->handle.get(), CURLPAUSE_CONT);
      return read;
    }
    read.ended = true;
    read.code = watch_->code();
    if (read.code == 401) read_token_again_ = true;
    if (watch_->result != CURLE_OK) read.error = watch_->ErrorText();
    CloseWatch();
    return read;
  }

  const ApiClientOptions options_;
  const Clock& clock_;
  std::unique_ptr<CURLM, FreeTransfers> multi_;
  std::unique_ptr<Transfer> watch_;
  std::string token_;
  std::optional<MonotonicTime> token_time_;
  bool read_token_again_ = false;
  bool has_ended_ = false;  // a transfer has, in the present Drive
  std::atomic<bool> woken_ = false;
  std::atomic<bool> stops_ = false;
};

ApiClient::ApiClient(ApiClientOptions options, const Clock& clock)
    : connections_(std::make_unique<Connections>(std::move(options), clock)) {}

ApiClient::~ApiClient() { connections_->CloseWatch(); }

ApiAnswer ApiClient::Call(const ApiRequest& request) { return connections_->Call(request); }
void ApiClient::OpenWatch(const std::string& path) { connections_->OpenWatch(path); }
void ApiClient::CloseWatch() { connections_->CloseWatch(); }
WatchRead ApiClient::ReadWatch(Duration limit) { return connections_->ReadWatch(limit); }
void ApiClient::Wake() { connections_->Wake(); }
void ApiClient::Stop() { connections_->Stop(); }

}  // namespace troupe
