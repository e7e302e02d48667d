#include "worker/daemon/spot_watch.h"

#include <curl/curl.h>

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace troupe {
namespace {

constexpr Duration kAskInterval = std::chrono::seconds(1);
constexpr Duration kAskLimit = std::chrono::seconds(1);
constexpr size_t kAnswerBytesMax = 64 * 1024;

// Appends a part of the answer; less than all of it ends the request.
size_t KeepPart(char* data, size_t one, size_t size, void* kept) {
  std::string& body = *static_cast<std::string*>(kept);
  if (body.size() + one * size > kAnswerBytesMax) return 0;
  body.append(data, one * size);
  return one * size;
}

struct HeaderList {
  curl_slist* first = nullptr;
  ~HeaderList() { curl_slist_free_all(first); }
};

}  // namespace

StatusOr<MetadataAnswer> AskMetadata(const std::string& url, const MetadataRequest& request,
                                     Duration limit) {
  const std::unique_ptr<CURL, void (*)(CURL*)> curl(curl_easy_init(), curl_easy_cleanup);
  if (curl == nullptr) return Unavailable("libcurl does not start");
  HeaderList headers;
  for (const std::string& header : request.headers)
    headers.first = curl_slist_append(headers.first, header.c_str());
  MetadataAnswer answer;
  const std::string target = url + request.path;
  const long milliseconds =
      static_cast<long>(std::chrono::duration_cast<std::chrono::milliseconds>(limit).count());
  curl_easy_setopt(curl.get(), CURLOPT_URL, target.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_NOPROXY, "*");
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_QUICK_EXIT, 1L);  // a name server may be silent
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, milliseconds);
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.first);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, KeepPart);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &answer.body);
  // A PUT without a body has a length all the same.
  if (request.is_put) {
    curl_easy_setopt(curl.get(), CURLOPT_CUSTOMREQUEST, "PUT");
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, "");
  }
  const CURLcode code = curl_easy_perform(curl.get());
  if (code == CURLE_OPERATION_TIMEDOUT)
    return DeadlineExceeded("{} did not answer within {} s", target, ToSeconds(limit));
  if (code == CURLE_WRITE_ERROR)
    return Unavailable("{}: the answer has more than {} bytes", target, kAnswerBytesMax);
  if (code != CURLE_OK) return Unavailable("{}: {}", target, curl_easy_strerror(code));
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  answer.code = static_cast<int>(status);
  return answer;
}

SpotWatch::SpotWatch(SpotWatchOptions options) : options_(std::move(options)) {
  curl_global_init(CURL_GLOBAL_DEFAULT);
  thread_ = std::thread([this] { Run(); });
}

SpotWatch::~SpotWatch() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  ended_.notify_all();
  thread_.join();
  curl_global_cleanup();
}

void SpotWatch::Run() {
  SpotConversation conversation(options_.provider);
  std::optional<SpotNotice> notice;
  std::unique_lock lock(mutex_);
  while (!ends_) {
    lock.unlock();
    if (!notice) notice = Ask(&conversation);
    if (notice && options_.on_notice(*notice).ok()) return;
    lock.lock();
    ended_.wait_for(lock, kAskInterval, [this] { return ends_; });
  }
}

std::optional<SpotNotice> SpotWatch::Ask(SpotConversation* conversation) {
  const auto ask = [&]() -> StatusOr<std::optional<SpotNotice>> {
    TROUPE_ASSIGN_OR_RETURN(const MetadataAnswer answer,
                            AskMetadata(options_.url, conversation->Next(), kAskLimit));
    return conversation->Handle(answer, WallSeconds(SystemClock()));
  };
  StatusOr<std::optional<SpotNotice>> notice = ask();
  if (notice.ok()) {
    complaints_.Succeed();
    return *std::move(notice);
  }
  const std::string reason = ToString(notice.status());
  if (complaints_.IsNews(reason, SystemClock().Now()))
    LogWarning("worker", "no spot notice can be read; it tries again: {}", reason);
  return std::nullopt;
}

}  // namespace troupe
